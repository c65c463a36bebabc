import Glibc

/// A file of lines, each of which is written in one call.
final class LogFile: Sendable {
  private let file: Int32

  init?(_ path: String) {
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    if file < 0 { return nil }
  }

  func append(_ text: String) {
    let bytes = Array("\(text)\n".utf8)
    _ = write(file, bytes, bytes.count)
  }
}

func startThread(_ run: @escaping @Sendable () -> Void) {
  final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }
  var thread = pthread_t()
  let code = pthread_create(
    &thread, nil,
    { argument in
      if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run() }
      return nil
    }, Unmanaged.passRetained(Body(run)).toOpaque())
  precondition(code == 0, "no thread")
  pthread_detach(thread)
}

/// A Unix socket at which each connection sends one line.
struct CommandListener {
  private let listener: Int32

  init?(_ path: String) {
    listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    unlink(path)
    let bound = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard bound == 0, listen(listener, 8) == 0 else { return nil }
  }

  func connections() -> AsyncStream<CommandConnection> {
    let (stream, continuation) = AsyncStream.makeStream(of: CommandConnection.self)
    startThread { [listener] in
      while true {
        let socket = accept(listener, nil, nil)
        if socket >= 0 { continuation.yield(CommandConnection(socket: socket)) }
      }
    }
    return stream
  }
}

struct CommandConnection {
  let socket: Int32

  func answer(_ perform: (String) async -> String) async {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while read(socket, &byte, 1) == 1, byte != UInt8(ascii: "\n") { line.append(byte) }
    let reply = await perform(String(decoding: line, as: UTF8.self)) + "\n"
    let bytes = Array(reply.utf8)
    _ = send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    close(socket)
  }
}

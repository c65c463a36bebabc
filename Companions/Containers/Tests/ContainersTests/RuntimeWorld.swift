import Foundation

@testable import Containers

/// A daemon, a runtime, and `dormouse-containers` between them.
final class RuntimeWorld {
  /// A server that keeps a count and 20 MB, and answers each line with both.
  static let server = """
    import hashlib, os, random, signal, socketserver, sys
    random.seed(7)
    memory = bytearray(random.randbytes(20 << 20))
    count = 0
    def hear(number, frame):
        print("heard", number, flush=True)
        if number == signal.SIGTERM: os._exit(0)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1): signal.signal(number, hear)
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            global count
            for line in self.rfile:
                count += 1
                self.wfile.write(f"{count} {hashlib.sha256(memory).hexdigest()[:8]}\\n".encode())
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    server = socketserver.ThreadingTCPServer((sys.argv[2], int(sys.argv[1])), Handler)
    print("ready", flush=True)
    server.serve_forever()

    """

  let daemon: AdoptingTestDaemon
  let runtime: LocalRuntime
  let watch: RunningWatch

  init(_ kind: RuntimeKind) throws {
    daemon = try AdoptingTestDaemon()
    runtime = try LocalRuntime(kind)
    try Data(Self.server.utf8).write(to: URL(filePath: "\(runtime.scratch.path)/server.py"))
    var settings = WatchSettings(
      runtimes: [Runtime(name: kind.rawValue, socket: runtime.socket)], socket: daemon.socket)
    settings.daemonInterval = .milliseconds(300)
    settings.retry = RetryDelays(first: .milliseconds(50), longest: .milliseconds(500))
    watch = RunningWatch(settings)
  }

  /// Starts the server, and returns the port at which this machine reaches it.
  func startServer(_ name: String, _ options: [String] = []) async throws -> UInt16 {
    try runtime.start(
      name, ["-p", "127.0.0.1::8000"] + options,
      ["/usr/bin/python3", "/test/server.py", "8000", "0.0.0.0"])
    return try await published(8000, of: name)
  }

  func published(_ port: Int, of name: String) async throws -> UInt16 {
    let text = try runtime.command("port", name, "\(port)/tcp")
    guard let port = text.split(separator: ":").last.flatMap({ UInt16($0) }) else {
      throw Failure("no port: \(text); \(try runtime.command("logs", name))")
    }
    let isListening = try await eventually { (try? LineConnection(port: port))?.isOpen == true }
    if !isListening {
      throw Failure("\(name) doesn't listen: \(try runtime.command("logs", name))")
    }
    return port
  }

  func hibernate(_ name: String) async throws { try await daemon.hibernate(name) }

  func state(_ name: String) throws -> String { try daemon.state(of: name) ?? "none" }
}

/// A connection of lines over TCP.
final class LineConnection {
  private let file: Int32

  init(port: UInt16) throws {
    file = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var limit = timeval(tv_sec: 60, tv_usec: 0)
    setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else {
      close(file)
      throw Failure("connect: errno \(errno)")
    }
  }

  func ask(_ line: String = "x") throws -> String {
    let bytes = Array("\(line)\r\n".utf8)
    guard send(file, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
      throw Failure("send: errno \(errno)")
    }
    var answer = [UInt8](repeating: 0, count: 4096)
    let count = recv(file, &answer, answer.count, 0)
    guard count > 0 else { throw Failure("no answer: \(count), errno \(errno)") }
    return String(decoding: answer[..<count], as: UTF8.self)
  }

  /// True if the connection stays open. Docker's proxy accepts connections before the server does,
  /// and closes them.
  var isOpen: Bool {
    usleep(200_000)
    var byte: UInt8 = 0
    return recv(file, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) < 0
      && errno == EAGAIN
  }

  deinit { close(file) }
}

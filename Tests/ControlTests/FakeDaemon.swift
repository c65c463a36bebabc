import Control
import Dispatch
import Glibc
import JSONLines

/// A daemon that accepts one client on a thread of its own and follows a script.
final class FakeDaemon: Sendable {
  let path: String
  private let directory: String
  private let listener: Int32
  private let finished = DispatchSemaphore(value: 0)

  struct SetupFailure: Error { var step: String, errno: Int32 }

  /// The script gets the accepted connection, which is closed after it.
  init(_ script: @escaping @Sendable (FakeConnection) -> Void) throws {
    directory = try makeTemporaryDirectory()
    path = "\(directory)/control.sock"
    let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard listener >= 0 else { throw SetupFailure(step: "socket", errno: errno) }
    self.listener = listener
    let status = try UnixSocketAddress.with(path: path) { bind(listener, $0, $1) }
    guard status == 0, listen(listener, 4) == 0 else {
      throw SetupFailure(step: "listen", errno: errno)
    }
    DispatchQueue(label: "fake daemon").async { [finished] in
      let connection = accept(listener, nil, nil)
      if connection >= 0 {
        script(FakeConnection(descriptor: connection))
        close(connection)
      }
      finished.signal()
    }
  }

  deinit {
    // Wakes an accept that nobody answered, so that the thread ends in any case.
    shutdown(listener, Int32(SHUT_RDWR))
    finished.wait()
    close(listener)
    unlink(path)
    rmdir(directory)
  }
}

struct FakeConnection {
  let descriptor: Int32

  /// The next `count` requests; fewer where the client hangs up.
  func requests(_ count: Int) -> [ControlRequest] {
    var framer = LineFramer()
    var result: [ControlRequest] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while result.count < count {
      let length = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
      guard length > 0 else { return result }
      framer.append(buffer[..<length])
      while let line = try? framer.next() {
        guard let request = try? WireCodec.decode(ControlRequest.self, from: line) else { continue }
        result.append(request)
      }
    }
    return result
  }

  func send(_ response: ControlResponse) { send((try? WireCodec.line(for: response)) ?? []) }

  func send(_ text: String) { send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  /// Until the client hangs up.
  func waitForEnd() {
    var byte: UInt8 = 0
    while read(descriptor, &byte, 1) > 0 {}
  }
}

/// A new directory under /tmp, whose path is short enough for a socket.
func makeTemporaryDirectory() throws -> String {
  var template = Array("/tmp/dormouse-test-XXXXXX".utf8CString)
  guard mkdtemp(&template) != nil else {
    throw FakeDaemon.SetupFailure(step: "mkdtemp", errno: errno)
  }
  return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

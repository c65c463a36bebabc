import Glibc
import Synchronization

/// A test's daemon. It listens at a Unix socket in its own directory, and runs a script for each
/// connection, on that connection's own thread.
public final class FakeDaemon: Sendable {
  public let path: String
  private let scratch: Scratch
  private let listener: Int32
  private let script: @Sendable (FakeConnection) -> Void
  private let isListening = Mutex(false)

  /// `listens`: false: the socket doesn't exist before `listen`.
  public init(listens: Bool = true, _ script: @escaping @Sendable (FakeConnection) -> Void) throws {
    scratch = try Scratch()
    path = "\(scratch.path)/daemon.sock"
    self.script = script
    listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard listener >= 0 else { throw TestFailure("socket: errno \(errno)") }
    if listens { try listen() }
  }

  deinit {
    if isListening.withLock({ $0 }) {
      // Wakes the thread that accepts, which closes it.
      shutdown(listener, Int32(SHUT_RDWR))
    } else {
      close(listener)
    }
  }

  public func listen() throws {
    guard withUnixAddress(path, { bind(listener, $0, $1) }) == 0,
      Glibc.listen(listener, 8) == 0
    else { throw TestFailure("listen: errno \(errno)") }
    try TestThread { [listener, script] in
      while true {
        let socket = accept(listener, nil, nil)
        guard socket >= 0 else { break }
        let connection = FakeConnection(socket)
        do {
          try TestThread { script(connection) }.detach()
        } catch {
          print("a connection without a script: \(error)")
        }
      }
      close(listener)
    }.detach()
    isListening.withLock { $0 = true }
  }
}

/// A connection from the daemon's side. Closed with the last reference to it.
public final class FakeConnection: Sendable {
  public let descriptor: Int32

  public init(_ descriptor: Int32) { self.descriptor = descriptor }
  deinit { close(descriptor) }

  public func send(_ text: String) { send(Array(text.utf8)) }

  public func send(_ bytes: [UInt8]) {
    var remainder = bytes[...]
    while !remainder.isEmpty {
      let count = remainder.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return }
      remainder = remainder.dropFirst(count)
    }
  }

  /// The next bytes; none at the end.
  public func receive() -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
    return Array(buffer.prefix(max(0, count)))
  }

  /// Waits until the client hangs up.
  public func waitForEnd() { while !receive().isEmpty {} }

  public func hangUp() { shutdown(descriptor, Int32(SHUT_RDWR)) }
}

import Linux
import TestSupport

/// An unmodified HTTP server with state in memory, in the foreground once it listens.
struct WebWorker {
  let port: UInt16
  var megabytes = 4
  var cacheMegabytes = 0
  var name = "web"
  var more = ""

  init(megabytes: Int = 4, cacheMegabytes: Int = 0, name: String = "web", more: String = "") throws
  {
    port = try freePort()
    self.megabytes = megabytes
    self.cacheMegabytes = cacheMegabytes
    self.name = name
    self.more = more
  }

  /// Waits until it is in the foreground, and no hang-up is left that would wake it from a sleep.
  func waitUntilReady(under daemon: TestDaemon) throws {
    try daemon.wait(name, toBe: "foreground")
    try waitForItsReads()
  }

  /// Waits until it is ready. Returns a connection to it, and the digest of its state.
  func answer(under daemon: TestDaemon) throws -> (HTTPConnection, digest: String) {
    try waitUntilReady(under: daemon)
    let connection = try HTTPConnection(port: port)
    return (connection, try connection.get("/digest"))
  }

  /// Waits until it has read all hang-ups: the daemon's readiness probe hangs up, as clients do,
  /// and a worker that hasn't read that yet would be woken by it.
  func waitForItsReads() throws {
    guard try eventually({ try !Self.hasHangUp(port) }) else {
      throw TestFailure("\(name) doesn't close its connections")
    }
  }

  /// proc(5): local address, remote address, state; 08 is CLOSE_WAIT.
  private static func hasHangUp(_ port: UInt16) throws -> Bool {
    let digits = String(port, radix: 16, uppercase: true)
    let suffix = ":" + String(repeating: "0", count: 4 - digits.count) + digits
    return try readText("/proc/net/tcp").split(separator: "\n").contains { line in
      let fields = line.split(separator: " ")
      return fields.count > 3 && fields[1].hasSuffix(suffix) && fields[3] == "08"
    }
  }

  /// Its entry below `workers:`. An answer takes longer than a tick of TCP's clock, so that the
  /// daemon knows that it was sent: a worker with a request that may be unanswered would be woken.
  func entry(_ setting: Setting = .traced) -> String {
    let script = setting == .ordinaryUser ? "http_state.py" : TestMachine.fixture("http_state.py")
    return """
        \(name):
          command: [\(TestMachine.python), "\(script)", "--port", "\(port)", "--megabytes",
            "\(megabytes)", "--cache-mb", "\(cacheMegabytes)", "--delay-ms", "20"]
          readiness: { tcp: \(port) }
          \(more)

      """
  }
}

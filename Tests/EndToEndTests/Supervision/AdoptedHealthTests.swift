import Glibc
import Linux
import TestSupport
import Testing

@Suite("Health checks of adopted workers") struct AdoptedHealthTests {
  private struct Server {
    let server: ForeignServer
    let healthPort: UInt16
    var port: UInt16 { server.port }

    init(_ scratch: Scratch) throws {
      let port = try freePort()
      healthPort = try freePort()
      server = try ForeignServer(
        scratch, "health_http.py", port: port,
        arguments: ["\(port)", "\(healthPort)", scratch.path])
    }

    func adopt(by daemon: TestDaemon) throws {
      try daemon.done(
        "adopt", "web", "--pid", "\(server.process.pid)", "--health-check", "\(healthPort)/healthz",
        "--health-check", "\(healthPort)/readyz", "--health-check", "\(port)")
    }

    func check(_ path: String) throws -> String { try HTTPConnection(port: healthPort).get(path) }
  }

  private static let policy = """
    policy_overrides:
      background: { suspend_after: 1h }
      hibernate: { after: never, cooldown: 0s, max_footprint: 32MB }

    """

  @Test("The daemon answers a hibernated worker's checks of several paths, and of a port alone")
  func answers() throws {
    let daemon = try TestDaemon(Self.policy)
    let server = try Server(daemon.scratch)
    try server.adopt(by: daemon)
    #expect(try server.check("/healthz") == "ok")
    try daemon.done("hibernate", "web")
    for _ in 0..<5 {
      for path in ["/healthz", "/readyz?full"] { #expect(try server.check(path) == "asleep") }
      _ = try HTTPConnection(port: server.port)
    }
    #expect(try eventually { try daemon.worker("web").answeredAsleep == 15 }, "\(daemon.logText)")
    #expect(try daemon.worker("web").state == "hibernated", "\(daemon.logText)")
    #expect(try daemon.done("status", "web").contains("15 answered while it slept"))
    // The worker itself serves a request at the port that isn't for checks alone.
    #expect(try HTTPConnection(port: server.port).get("/count") == "1")
    try daemon.wait("web", toBe: "background")
    try daemon.done("hibernate", "web")
    // 503, without a body.
    #expect(try server.check("/other") == "")
    try daemon.wait("web", toBe: "background")
    #expect(try server.check("/healthz") == "ok")
  }

  @Test func `A health check that can't be meant is refused, with what is allowed`() throws {
    let daemon = try TestDaemon(Self.policy)
    let outcome = try daemon.verb(
      "adopt", "web", "--pid", "\(getpid())", "--health-check", "healthz")
    #expect(outcome.code == 64)
    #expect(outcome.error.contains("`healthz` isn't a health check"), "\(outcome)")
    #expect(outcome.error.contains("such as `8081/healthz`"), "\(outcome)")
  }
}

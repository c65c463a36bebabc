import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Health checks") struct HealthTests {
  /// `health_http.py`, its ports and its files.
  private struct Server {
    let port: UInt16
    let healthPort: UInt16
    let scratch: Scratch

    init() throws {
      port = try freePort()
      healthPort = try freePort()
      scratch = try Scratch()
    }

    func entry(_ more: String) -> String {
      """
        web:
          command: [\(TestMachine.python), "\(TestMachine.fixture("health_http.py"))", "\(port)",
            "\(healthPort)", "\(scratch.path)"]
          readiness: { tcp: \(port) }
          \(more)

      """
    }

    /// The number of health checks that the server itself has answered.
    var checks: Int { (try? readText("\(scratch.path)/checks").utf8.count) ?? 0 }
  }

  @Test("A worker that fails its liveness probe is ended with that reason and restarted")
  func liveness() throws {
    let server = try Server()
    let daemon = try TestDaemon(
      "workers:\n"
        + server.entry(
          """
          liveness: { httpGet: { path: /healthz, port: \(server.healthPort) }, periodSeconds: 1, \
          failureThreshold: 2, timeoutSeconds: 30 }
              restart: { when: on-failure, backoff: { initial: 50ms } }
          """))
    try daemon.wait("web", toBe: "foreground")
    let pid = try daemon.worker("web").pid
    #expect(try eventually { server.checks >= 2 }, "\(daemon.logText)")
    #expect(try daemon.worker("web").pid == pid)
    _ = try server.scratch.write("sick", "")
    try daemon.waitForLogText(
      "liveness probe failed 2 times in a row: /healthz: status 503")
    #expect(
      try eventually {
        let now = try daemon.worker("web").pid
        return now != nil && now != pid
      }, "\(daemon.logText)")
    try daemon.wait("web", toBe: "foreground")
    #expect(try daemon.worker("web").exits?.last?.why.text.contains("liveness") == true)
  }

  @Test("The daemon answers health checks of a sleeping worker at a separate port; others wake it")
  func pathAsleep() throws {
    let server = try Server()
    let checks = ["healthz", "readyz"].map { "{ port: \(server.healthPort), path: /\($0) }" }
    let daemon = try TestDaemon(
      WakeTests.manual
        + server.entry("health_checks_while_asleep: [\(checks.joined(separator: ", "))]"))
    try daemon.wait("web", toBe: "foreground")
    #expect(try HTTPConnection(port: server.healthPort).get("/healthz") == "ok")
    for verb in ["suspend", "hibernate"] {
      let served = server.checks
      try daemon.done(verb, "web")
      let state = try daemon.worker("web").state
      let descriptors = try daemon.descriptorCount()
      for path in Array(repeating: ["/healthz", "/readyz?full"], count: 10).joined() {
        #expect(try HTTPConnection(port: server.healthPort).get(path) == "asleep")
      }
      #expect(try daemon.worker("web").state == state, "\(daemon.logText)")
      #expect(try eventually { try daemon.worker("web").answeredAsleep == 20 })
      #expect(try daemon.done("status", "web").contains("20 answered while it slept"))
      #expect(server.checks == served)
      #expect(try eventually { try daemon.descriptorCount() <= descriptors })
      #expect(Int(try HTTPConnection(port: server.port).get("/count")) != nil)
      try daemon.wait("web", toBe: "background")
      #expect(try HTTPConnection(port: server.healthPort).get("/healthz") == "ok")
    }
    try daemon.done("suspend", "web")
    let other = try HTTPConnection(port: server.healthPort)
    // It gets no body: a connection can't be passed on to the worker, so the client has to connect
    // again.
    #expect(try other.get("/other") == "")
    try daemon.wait("web", toBe: "background")
    try daemon.waitForLogText("not a health check")
  }

  @Test func `Health checks at a separate port don't keep a worker awake`() throws {
    let server = try Server()
    let daemon = try TestDaemon(
      WakeTests.server
        + server.entry("health_checks_while_asleep: { port: \(server.healthPort), path: /healthz }")
    )
    try daemon.wait("web", toBe: "foreground")
    var answers: [String] = []
    let asleep = try eventually(within: .seconds(60)) {
      usleep(200_000)
      answers.append(try HTTPConnection(port: server.healthPort).get("/healthz"))
      let wasAwake = answers.contains("ok")
      // A machine that holds this test up lets the worker sleep before the first of them.
      if !wasAwake { try daemon.done("wake", "web") }
      return wasAwake && answers.last == "asleep"
    }
    #expect(asleep, "\(daemon.logText)")
    #expect(Set(answers) == ["ok", "asleep"])
    #expect(try daemon.worker("web").state == "suspended")
  }

  @Test func `The next daemon answers the health checks of a sleeping worker`() throws {
    let server = try Server()
    let daemon = try TestDaemon(
      WakeTests.manual
        + server.entry("health_checks_while_asleep: { port: \(server.healthPort), path: /healthz }")
    )
    try daemon.wait("web", toBe: "foreground")
    try daemon.done("suspend", "web")
    try daemon.crash()
    let early = try HTTPConnection(port: server.healthPort)
    try early.send("/healthz")
    try daemon.start()
    try daemon.waitForLogText("web: adopted")
    // Without a cgroup no worker stays asleep without a daemon.
    let asleep = daemon.logText.contains("web: adopted, still suspended")
    #expect(try early.receive() == (asleep ? "asleep" : "ok"), "\(daemon.logText)")
    try daemon.wait("web", toBe: asleep ? "suspended" : "background")
  }
}

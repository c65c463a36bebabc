import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Processes that are adopted by a rule") struct RuledWorkerTests {
  /// A server that the test supervises itself, and that a rule knows by its port.
  private struct Server {
    private let server: ForeignServer
    var pid: Int32 { server.process.pid }
    /// The name of the server's worker.
    var name: String { "web-\(pid)" }

    static func pattern(_ port: UInt16) -> String { "*/http_state.py --port \(port) *" }

    init(_ scratch: Scratch, port: UInt16) throws {
      server = try ForeignServer(
        scratch, "http_state.py", port: port,
        arguments: ["--port", "\(port)", "--delay-ms", "20", "--megabytes", "1"])
    }

    func end() throws {
      kill(pid, SIGKILL)
      try server.process.wait(.seconds(60))
    }

    var isStopped: Bool { (try? ProcessStat.read(pid))?.state.isAtRest == true }
  }

  private static let policy = """
    policy_overrides:
      foreground: { mode: activity, max: unlimited, idle_after: 1s }
      background: { suspend_after: 1s }
      hibernate: { after: 1s, cooldown: 0s, min_footprint: 4KB, only_if_faster_than_relaunch: \
    false }

    """

  private static func rule(
    _ port: UInt16, _ keys: String = "mode: manage", name: String = "web"
  ) -> String { "adopt:\n" + item(port, keys, name: name) }

  private static func item(_ port: UInt16, _ keys: String, name: String) -> String {
    """
      - name: \(name)
        match: { command: "\(Server.pattern(port))", user: me }
        \(keys)

    """
  }

  /// What it does, within the time of four looks.
  private func wait(
    _ daemon: TestDaemon, _ name: String, isThere: Bool = true
  ) throws {
    let isSo = try eventually(within: .seconds(60)) {
      (try daemon.ask(.status, name).workers?.first != nil) == isThere
    }
    guard isSo else {
      throw TestFailure("\(name) is\(isThere ? "n't" : "") adopted; the daemon: \(daemon.logText)")
    }
  }

  @Test("A new process is adopted, hibernates, is woken by a client, and is forgotten when it ends")
  func life() throws {
    let port = try freePort()
    let daemon = try TestDaemon(Self.policy + Self.rule(port))
    let server = try Server(daemon.scratch, port: port)
    try wait(daemon, server.name)
    let report = try daemon.worker(server.name)
    #expect(report.rule == "web" && report.isAdopted == true && report.pid == server.pid)
    try daemon.wait(server.name, toBe: "hibernated", within: .seconds(60))
    #expect(server.isStopped)
    #expect(try HTTPConnection(port: port).get("/count") == "1")
    let text = try daemon.done("explain", server.name)
    #expect(text.contains("Adopted by the rule web"), "\(text)")
    #expect(try daemon.done("status", server.name).contains("the rule web"))
    #expect(
      try daemon.done("events", "--worker", server.name).contains("adopted while it ran (rule web)")
    )
    try server.end()
    try wait(daemon, server.name, isThere: false)
  }

  @Test(
    "After a kill of the daemon the next one has the worker asleep under its rule, or releases it")
  func killed() throws {
    let port = try freePort()
    let text = Self.policy + Self.rule(port)
    let daemon = try TestDaemon(text)
    let server = try Server(daemon.scratch, port: port)
    try wait(daemon, server.name)
    try daemon.wait(server.name, toBe: "hibernated", within: .seconds(60))
    try daemon.waitForRecord(of: server.name)
    try daemon.restartAfterCrash()
    try wait(daemon, server.name)
    let report = try daemon.worker(server.name)
    #expect(report.rule == "web" && report.pid == server.pid)
    #expect(try HTTPConnection(port: port).get("/count") == "1")
    try daemon.wait(server.name, toBe: "hibernated", within: .seconds(60))
    try daemon.waitForRecord(of: server.name)
    try daemon.crash()
    try daemon.rewrite(Self.policy)
    try daemon.start()
    try wait(daemon, server.name, isThere: false)
    #expect(try HTTPConnection(port: port).get("/count") == "2")
    #expect(!server.isStopped)
  }

  @Test("A dry run lists what the rules match, with and without a daemon, and adopts nothing")
  func dryRun() throws {
    let port = try freePort()
    let daemon = try TestDaemon(
      Self.policy + Self.rule(port, "limit: 5").replacing("user: me", with: "older_than: 1h"))
    let server = try Server(daemon.scratch, port: port)
    let preview = try daemon.json(AdoptionPreviewReport.self, "adopt", "--dry-run")
    let finding = preview.findings.first { $0.pid == server.pid }
    #expect(finding?.result.code == "too_young" && finding?.worker == server.name)
    #expect(finding?.footprint ?? 0 > 1 << 20 && finding?.mode == "shadow")
    try daemon.rewrite(Self.policy + Self.rule(port))
    let outcome = try Command.dormouse(["adopt", "--dry-run", "--config", daemon.configuration])
      .run(in: daemon.scratch)
    #expect(outcome.code == 0 && outcome.output.contains("would be adopted"), "\(outcome)")
    #expect(try daemon.verb("status", server.name).code == 3)
  }
}

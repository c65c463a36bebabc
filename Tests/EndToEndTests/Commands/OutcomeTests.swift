import Control
import JSONLines
import TestSupport
import Testing

@testable import dormouse

@Suite("The outcome of verbs as JSON") struct OutcomeTests {
  private static let three = """
    policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
    workers:
      bot01: { command: sleep 700 }
      bot02: { command: sleep 701 }
      web: { command: sleep 702, autostart: false }
    """

  private func outcome(_ arguments: [String], _ daemon: TestDaemon, code: Int32 = 0) throws
    -> OutcomeReport
  {
    let result = try daemon.enter(arguments + ["--json"])
    #expect(result.code == code, "\(arguments): \(result)")
    let tree = try #require(JSON(Array(result.output.dropLast().utf8)), "\(arguments): \(result)")
    #expect(try DocumentSchema("outcome").problems(of: tree) == [], "\(arguments)")
    return try WireCodec.decode(OutcomeReport.self, from: Array(result.output.utf8))
  }

  @Test(
    "The JSON of each life cycle verb has every worker's result and its states before and after")
  func lifeCycle() throws {
    let daemon = try TestDaemon(Self.three)
    try daemon.bringToFront("bot01", among: ["bot01", "bot02"])
    let suspended = try outcome(["suspend", "bot01"], daemon)
    #expect(suspended.verb == "suspend" && suspended.code == "done")
    #expect(
      suspended.workers == [
        .init(
          worker: "bot01", code: "done", text: suspended.workers.first?.text ?? "",
          before: "foreground", after: "suspended")
      ])
    for verb in [
      "wake", "foreground", "background", "shadow", "enforce", "hibernate", "restart",
      "stop",
      "start", "terminate",
    ] {
      let one = try outcome([verb, "bot01"], daemon)
      #expect(one.verb == verb && one.workers.map(\.code) == ["done"], "\(one)")
      #expect(one.workers.first?.before != nil && one.workers.first?.after != nil, "\(one)")
    }
    let failed = try outcome(["wake", "ghost", "bot02"], daemon, code: 3)
    #expect(failed.code == "unknown_worker")
    #expect(failed.workers.map(\.code) == ["unknown_worker", "done"])
    let warned = try outcome(["warn", "bot02"], daemon, code: 1)
    #expect(warned.workers.map(\.code) == ["refused"])
    #expect(
      warned.workers.map(\.text) == ["bot02 can't be asked to free memory: configure `shed:`"])
    let refused = try outcome(["release", "bot02"], daemon, code: 1)
    #expect(refused.code == "refused" && refused.workers.first?.text.isEmpty == false)
    let plan = try outcome(["stop", "--all", "--dry-run"], daemon)
    #expect(plan.isDryRun == true && plan.workers.map(\.code) == ["planned"], "\(plan)")
    #expect(try outcome(["wake", "--all"], daemon).code == "nothing_to_do")
  }

  @Test("The JSON of `reload`, `pressure set` and `shutdown` has the verb's result")
  func daemonVerbs() throws {
    let daemon = try TestDaemon(Self.three)
    #expect(
      try outcome(["reload"], daemon).text == "nothing changed: the configuration is the same")
    #expect(try outcome(["reload", "--dry-run"], daemon).isDryRun == true)
    try daemon.rewrite("wokers: {}\n")
    #expect(try outcome(["reload"], daemon, code: 1).code == "refused")
    #expect(try outcome(["pressure", "set", "auto"], daemon).verb == "pressure_set")
    let plan = try outcome(["pressure", "set", "critical", "--dry-run"], daemon)
    #expect(plan.isDryRun == true, "\(plan)")
    #expect(try outcome(["shutdown", "--dry-run"], daemon).workers.count == 2)
    #expect(try outcome(["shutdown"], daemon).code == "done")
    #expect(try daemon.waitForEnd() == 0)
  }
}

import Control
import Glibc
import JSONLines
import Linux
import TestSupport
import Testing

@Suite("Commands of `on:` under a daemon") struct HookTests {
  /// The lines that commands have written to the file `name`.
  private func lines(_ daemon: TestDaemon, _ name: String) -> [String] {
    // It isn't there before the first command has written.
    ((try? readText("\(daemon.scratch.path)/\(name)")) ?? "").split(separator: "\n").map(
      String.init)
  }

  private func wait(
    _ daemon: TestDaemon, _ name: String, until isRight: ([String]) -> Bool
  ) throws -> [String] {
    guard try eventually({ isRight(lines(daemon, name)) }) else {
      throw TestFailure("\(name): \(lines(daemon, name)); the daemon: \(daemon.logText)")
    }
    return lines(daemon, name)
  }

  @Test("A command gets the event as `dormouse events --json` shows it, and a clean environment")
  func input() throws {
    let daemon = try TestDaemon(
      """
      policy_overrides:
        background: { suspend_after: never }
      on:
        hibernated: [sh, -c, "cat >> events"]
        daemon: [sh, -c, "cat >> started"]
      workers:
        web:
          command: [sleep, "1000"]
          environment: { SECRET: of-the-worker }
          on:
            woken: [sh, -c, "env > environment.new; readlink /proc/self/fd/* > descriptors; mv \
      environment.new environment"]
      """)
    let started = try wait(daemon, "started") { !$0.isEmpty }
    #expect(JSON(Array(started[0].utf8))?["kind"]?.text == "daemon")
    try daemon.done("hibernate", "web")
    let events = try wait(daemon, "events") { !$0.isEmpty }
    #expect(events.count == 1)
    let event = try #require(JSON(Array(events[0].utf8)))
    #expect(event["worker"]?.text == "web" && event["to"]?.text == "hibernated")
    #expect(event["code"]?.text == "requested_hibernate" && event["kind"]?.text == "state")
    let past = try daemon.done("events", "--json").split(separator: "\n").map {
      JSON(Array($0.utf8))
    }
    #expect(past.contains { $0?["to"]?.text == "hibernated" && $0?["text"] == event["text"] })
    try daemon.done("wake", "web")
    let environment = try wait(daemon, "environment") { !$0.isEmpty }
    #expect(environment.contains("DORMOUSE_EVENT=woken"))
    #expect(environment.contains("DORMOUSE_WORKER=web"))
    #expect(environment.contains("DORMOUSE_CONTROL_SOCKET=\(daemon.socket)"))
    #expect(!environment.contains { $0.hasPrefix("SECRET=") || $0.hasPrefix("NOTIFY_SOCKET=") })
    let descriptors = lines(daemon, "descriptors").filter { !$0.hasPrefix("/proc/") }
    #expect(
      descriptors.allSatisfy {
        $0.hasPrefix("/memfd:dormouse-event") || $0.hasPrefix("pipe:")
          || $0 == "\(daemon.scratch.path)/descriptors"
      }, "\(descriptors)")
  }

  @Test("A failure, its output and a crash are in the log, and the counts are in the metrics")
  func failed() throws {
    let daemon = try TestDaemon(
      """
      on:
        crashed: [[sh, -c, "echo seen by $DORMOUSE_WORKER; exit 4"], [/nowhere/program], ["true"]]
      workers:
        broken: { command: [sh, -c, "exit 3"] }
      """)
    try daemon.waitForLogText("command for crashed of broken (sh -c")
    try daemon.waitForLogText("failed: exited with status 4: seen by broken")
    try daemon.waitForLogText("(/nowhere/program) failed: did not start")
    let isCounted = try eventually {
      let page = try daemon.done("metrics").split(separator: "\n")
      return page.contains(#"dormouse_hooks_total{outcome="failed"} 2"#)
        && page.contains(#"dormouse_hooks_total{outcome="succeeded"} 1"#)
    }
    #expect(isCounted)
    #expect(try eventually { try daemon.zombies().isEmpty })
  }

  @Test("A command that takes too long gets SIGTERM and then SIGKILL; the daemon serves on")
  func tooLong() throws {
    let daemon = try TestDaemon(
      """
      policy_overrides:
        background: { suspend_after: never }
      on:
        suspended: [sh, -c, "trap 'echo asked > asked' TERM; sleep 1000 & echo $! > child; while \
      :; do sleep 1; done"]
        timeout: 20s
      workers:
        web: { command: [sleep, "1000"] }
      """)
    try daemon.done("suspend", "web")
    let child = try wait(daemon, "child") { !$0.isEmpty }
    #expect(try daemon.ask(.ps).result == .done)
    try daemon.waitForLogText("was ended after 20 s")
    #expect(lines(daemon, "asked") == ["asked"])
    let pid = try #require(Int32(child[0]))
    // Reaped, or a zombie that is about to be.
    #expect(try eventually { ((try? ProcessStat.read(pid))?.isEnded ?? true) })
    let counted = #"dormouse_hooks_total{outcome="timed_out"} 1"#
    #expect(try eventually { try daemon.done("metrics").contains(counted) })
  }

  @Test func `A reload changes the commands, and a wrong name leaves the old ones`() throws {
    let workers = "workers: { web: { command: [sleep, '1000'] } }\n"
    let daemon = try TestDaemon("on: { suspended: [sh, -c, 'echo old >> calls'] }\n" + workers)
    try daemon.done("suspend", "web")
    _ = try wait(daemon, "calls") { $0 == ["old"] }
    try daemon.rewrite(
      "on: { suspended: [sh, -c, 'echo new >> calls'] }\n" + workers)
    #expect(try daemon.done("reload").contains("the commands of `on` changed"))
    try daemon.done("wake", "web")
    try daemon.done("suspend", "web")
    _ = try wait(daemon, "calls") { $0 == ["old", "new"] }
    try daemon.rewrite("on: { suspnded: a }\n" + workers)
    let refused = try daemon.verb("reload")
    #expect(refused.code == 1 && refused.error.contains("dormouse.yaml:1:7"))
    #expect(refused.error.contains("did you mean `suspended`?"))
    try daemon.rewrite(workers)
    try daemon.done("reload")
    try daemon.done("wake", "web")
    try daemon.done("suspend", "web")
    try daemon.done("wake", "web")
    #expect(lines(daemon, "calls") == ["old", "new"])
  }
}

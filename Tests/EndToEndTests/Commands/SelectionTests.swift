import TestSupport
import Testing

@Suite("Verbs for all workers, and dry runs") struct SelectionTests {
  static let three = """
    policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
    workers:
      a: { command: sleep 660 }
      b: { command: sleep 661 }
      c: { command: sleep 662, autostart: false }
    """

  @Test("`stop`, `start` and `restart` with --all act on every worker that the verb applies to")
  func all() throws {
    let daemon = try TestDaemon(Self.three)
    #expect(try daemon.done("stop", "--all") == "a has ended\nb has ended\n")
    #expect(try daemon.done("stop", "--all") == "no worker runs\n")
    #expect(try daemon.done("start", "--all").split(separator: "\n").count == 3)
    #expect(try daemon.done("start", "--all") == "no worker to start\n")
    let before = try daemon.worker("c").pid
    try daemon.done("restart", "--all")
    #expect(try daemon.worker("c").pid != before)
    #expect(try daemon.verb("stop", "--all", "a").code == 64)
    #expect(try daemon.verb("stop").code == 64)
  }

  @Test(
    "`suspend` and `wake` with --all act on all workers; --dry-run lists those that would change")
  func allAsleep() throws {
    let daemon = try TestDaemon(Self.three)
    try daemon.bringToFront("b", among: ["a", "b"])
    let plan = try daemon.done("suspend", "--all", "--dry-run")
    #expect(
      plan.contains("a would be suspended (background") && !plan.contains("c would"), "\(plan)")
    #expect(try daemon.done("suspend", "--all").split(separator: "\n").count == 2)
    #expect(try daemon.done("suspend", "--all") == "no worker is awake\n")
    #expect(
      try daemon.done("hibernate", "a", "c", "--dry-run").contains("c would not change"))
    #expect(try daemon.done("wake", "--all", "--dry-run").contains("a would be woken (suspended"))
    #expect(try daemon.done("wake", "--all").split(separator: "\n").count == 2)
    #expect(try daemon.done("wake", "--all") == "no worker sleeps\n")
    #expect(try daemon.verb("hibernate").code == 64)
  }

  @Test func `Verbs accept groups, and an entry with instances is a group`() throws {
    let daemon = try TestDaemon(
      """
      workers:
        bot: { instances: [a, b], command: "sleep 67${INSTANCE_NUMBER:-3}", groups: chat }
        web: { command: sleep 672, groups: [chat, pages] }
      """)
    #expect(try daemon.done("ps", "@bot", "--names") == "bot-a\nbot-b\n")
    #expect(try daemon.done("ps", "@chat", "--names") == "bot-a\nbot-b\nweb\n")
    #expect(try daemon.done("stop", "@pages", "bot-b") == "web has ended\nbot-b has ended\n")
    let none = try daemon.verb("stop", "@pagse")
    #expect(
      none.code == 3
        && none.error.contains("no worker is in the group `@pagse`; did you mean `@pages`?"),
      "\(none)")
    #expect(try daemon.done("ps", "@p*", "--json").contains(#""groups":["chat","pages"]"#))
  }

  @Test("Verbs accept patterns of names, and a misspelt name gets the nearest one as a suggestion")
  func patterns() throws {
    let daemon = try TestDaemon(
      """
      workers:
        bot01: { command: sleep 670 }
        bot02: { command: sleep 671 }
        web: { command: sleep 672 }
      """)
    #expect(try daemon.done("ps", "bot0*", "--names") == "bot01\nbot02\n")
    #expect(try daemon.done("ps", "web", "--names") == "web\n")
    let none = try daemon.verb("ps", "bto01")
    #expect(none.code == 3 && none.error.contains("did you mean `bot01`?"), "\(none)")
    #expect(try daemon.done("stop", "bot0*") == "bot01 has ended\nbot02 has ended\n")
    #expect(try daemon.worker("web").state != "terminated")
    #expect(
      try daemon.done("start", "bot0?", "bot01", "--dry-run").split(separator: "\n").count == 2)
    let unmatched = try daemon.verb("stop", "cat*")
    #expect(unmatched.code == 3 && unmatched.error.contains("no worker's name fits `cat*`"))
    let misspelt = try daemon.verb("stop", "wbe")
    #expect(misspelt.code == 3 && misspelt.error.contains("did you mean `web`?"), "\(misspelt)")
    #expect(try daemon.verb("explain", "nope").code == 3)
    let report = try daemon.verb("report", "--worker", "nope")
    #expect(report.code == 3 && report.error.contains("nope"), "\(report)")
  }

  @Test func `--dry-run prints what a verb would do and changes nothing`() throws {
    let daemon = try TestDaemon(Self.three)
    try daemon.bringToFront("b", among: ["a", "b"])
    let pid = try #require(try daemon.worker("a").pid)
    let stop = try daemon.done("stop", "--all", "--dry-run")
    #expect(stop.contains("a would be stopped (background, pid \(pid), "), "\(stop)")
    #expect(
      try daemon.done("start", "a", "c", "--dry-run")
        == "a would not change: it is already running\nc would be started\n")
    #expect(try daemon.done("terminate", "a", "--dry-run").contains("a would be terminated"))
    #expect(try daemon.verb("stop", "ghost", "--dry-run").code == 3)
    #expect(
      try daemon.done("warn", "--all", "--dry-run").contains("a would be asked to free memory"))
    #expect(try daemon.done("trim", "--all", "--dry-run").contains("a would be trimmed, if"))
    #expect(try daemon.done("trim", "c", "--dry-run").contains("c would not change: it is not"))
    #expect(try daemon.done("fill", "a", "--dry-run").contains("all of its memory is in RAM"))
    #expect(
      try daemon.done("foreground", "a", "--dry-run").contains("a would go to the foreground"))
    #expect(try daemon.done("shadow", "a", "--dry-run").contains("decisions would be logged"))
    #expect(try daemon.done("release", "a", "--dry-run").contains("it is not adopted"))
    let shutdown = try daemon.done("shutdown", "--dry-run")
    #expect(shutdown.contains("b would be stopped (") && shutdown.contains("the daemon would end"))
    #expect(try daemon.worker("a").pid == pid)
  }

  @Test(
    "`top` without a terminal prints one table, largest worker first; `ps --names` prints names")
  func top() throws {
    let large = "x = bytearray(30 << 20); import time; time.sleep(664)"
    let daemon = try TestDaemon(
      Self.three + "\n  z: { command: [\(TestMachine.python), -c, \"\(large)\"] }")
    #expect(try daemon.done("ps", "--names") == "a\nb\nc\nz\n")
    #expect(try eventually { try daemon.worker("z").footprint > 30 << 20 })
    let lines = try daemon.done("top").split(separator: "\n")
    #expect(lines[0].hasPrefix("saved now "))
    #expect(lines[1].hasPrefix("pressure "))
    #expect(lines[2].hasPrefix("4 workers"))
    #expect(lines[4].hasPrefix("z "))
    #expect(!lines.joined().contains("\u{1B}"))
  }
}

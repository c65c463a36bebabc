import Control
import Glibc
import JSONLines
import Linux
import TestSupport
import Testing

@testable import dormouse

@Suite("The journal of a daemon") struct JournalTests {
  private static let configuration = """
    policy_overrides: { background: { suspend_after: 1s } }
    workers:
      one: { command: sleep 650 }
      two: { command: sleep 651 }
    """

  private func segments(of daemon: TestDaemon) throws -> [String] {
    try listDirectory("\(daemon.state)/journal").sorted().map { "\(daemon.state)/journal/\($0)" }
  }

  private func replay(_ daemon: TestDaemon, _ arguments: String...) throws -> Outcome {
    var command = Command.dormouse(["replay", "\(daemon.state)/journal"] + arguments)
    command.directory = daemon.scratch.path
    return try command.run(in: daemon.scratch)
  }

  @Test("`replay` repeats every decision exactly, across a crash of the daemon and a reload")
  func determinism() throws {
    let daemon = try TestDaemon(Self.configuration)
    try daemon.bringToFront("two", among: ["one", "two"])
    try daemon.done("suspend", "one")
    try daemon.done("foreground", "one")
    try daemon.rewrite(
      Self.configuration.replacing("1s", with: "2s"))
    try daemon.done("reload")
    try daemon.done("stop", "two")
    try daemon.restartAfterCrash()
    try daemon.done("foreground", "one")
    try daemon.done("suspend", "one")

    let outcome = try replay(daemon)
    #expect(outcome.code == 0, "\(outcome)")
    #expect(outcome.output.contains("2 segments of 2 daemons"), "\(outcome)")
    let unchanged = try daemon.json(ReplayReport.self, "replay")
    #expect(unchanged.differingEvents == 0 && unchanged.problems.isEmpty && unchanged.events > 10)
    let other = try replay(daemon, "--policy", "server", "--json")
    let report = try WireCodec.decode(ReplayReport.self, from: Array(other.output.utf8))
    #expect(report.comparison?.policy == "server")
    #expect(report.comparison?.workers.map(\.worker) == ["one", "two", nil])
    #expect(report.totals?.map(\.policy) == [nil, "server"] && report.comparisons == nil)

    let mine = try daemon.scratch.write("mine.yaml", "extends: ios-5\nhibernate: { after: 1s }\n")
    let several = try replay(daemon, "--policy", "server,\(mine)")
    let lines = several.output.split(separator: "\n").map(String.init)
    #expect(several.code == 0 && lines.contains { $0.hasPrefix("POLICY") }, "\(several)")
    #expect(
      lines.suffix(3).map { $0.prefix { $0 != " " } } == ["recorded", "server", "mine"],
      "\(several)")
    let both = try WireCodec.decode(
      ReplayReport.self,
      from: Array(try replay(daemon, "--policy", "server,server", "--json").output.utf8))
    #expect(both.totals?.map(\.policy) == [nil, "server", "server"] && both.comparison == nil)
    #expect(both.comparisons?.count == 2 && both.comparisons?[0] == both.comparisons?[1])

    let never = try replay(daemon, "--set", "background.suspend_after=never", "--json")
    let changed = try WireCodec.decode(ReplayReport.self, from: Array(never.output.utf8))
    #expect(changed.comparison?.policy == "changed", "\(never)")
    #expect(try replay(daemon, "--set", "background.suspend_aftr=1s").code == 64)
    #expect(try replay(daemon, "--policy", "server,sever").code == 65)
  }

  @Test("`replay` reports where the journal is damaged and continues with the next segment")
  func damage() throws {
    let daemon = try TestDaemon(Self.configuration)
    try daemon.bringToFront("two", among: ["one", "two"])
    try daemon.restartAfterCrash()
    try daemon.done("ps")
    let paths = try segments(of: daemon)
    try #require(paths.count == 2)

    // The last record is incomplete, as after a loss of power.
    let whole = try readFile(paths[0])
    #expect(truncate(paths[0], whole.count - 7) == 0)
    let torn = try replay(daemon)
    #expect(torn.code == 0 && torn.error.contains("incomplete and skipped"), "\(torn)")

    var damaged = whole
    // After the header and the engine's initial state.
    let start = whole.split(separator: 10).prefix(3).reduce(0) { $0 + $1.count + 1 }
    damaged[start + 20] ^= 1
    try Descriptor.open(paths[0], O_WRONLY | O_TRUNC).writeAll(
      String(decoding: damaged, as: UTF8.self))
    let outcome = try replay(daemon)
    #expect(outcome.code == 1 && outcome.error.contains("is damaged"), "\(outcome)")
    #expect(outcome.output.contains("2 segments of 2 daemons"), "\(outcome)")
  }

  @Test("`simulate --journal` and `policy suggest` read the own history, and refuse one too short")
  func historyOfDaemon() throws {
    let daemon = try TestDaemon(Self.configuration)
    try daemon.bringToFront("two", among: ["one", "two"])
    try daemon.wait("one", toBe: "suspended")
    try daemon.done("wake", "one")
    #expect(try eventually { try daemon.enter(["simulate", "--journal"]).code == 0 })
    let table = try daemon.done("simulate", "--journal", "--policy", "server")
    for expected in ["own history: ", "history from 20", "recorded: ", ", in effect", "server"] {
      #expect(table.contains(expected), "\(table)")
    }
    let directory = "\(daemon.scratch.path)/trace"
    try daemon.done("simulate", "--journal", "--convert", "dormouse", "--output", directory)
    let kept = try daemon.verb("simulate", "--journal", "--trace", "\(directory)/trace.csv")
    #expect(kept.code == 64, "\(kept)")
    let again = try Command.dormouse(["simulate", "--trace", "\(directory)/trace.csv"]).run(
      in: daemon.scratch)
    #expect(again.code == 0, "\(again)")

    let short = try daemon.enter(["policy", "suggest"])
    #expect(short.code == 1 && short.error.contains("too short"), "\(short)")
    #expect(short.error.contains("of at least 1 h"), "\(short)")
    let unknown = try daemon.enter(["policy", "suggest", "--min-history", "1s", "--worker", "onn"])
    #expect(unknown.code == 3 && unknown.error.contains("did you mean `one`"), "\(unknown)")
    let none = try daemon.enter(["policy", "suggest", "--min-history", "1s"])
    #expect(none.code == 0 && none.output.contains("would have been clearly better"), "\(none)")
  }

  @Test("`events` prints past and new events as sentences, also of one worker only")
  func events() throws {
    let daemon = try TestDaemon(Self.configuration)
    try daemon.bringToFront("two", among: ["one", "two"])
    var client = try ControlClient(connectingTo: daemon.socket, isNamed: true)
    let id = try client.send(.events, worker: "one") { $0.follow = true }
    let response = try client.response(to: id, timeout: .seconds(60))
    #expect(response.journal?.directory == "\(daemon.state)/journal")
    try daemon.wait("one", toBe: "suspended")
    try daemon.done("wake", "one")
    var events: [EventRecord] = []
    while events.last?.from != "suspended" { events.append(try client.nextEvent()) }
    #expect(events.allSatisfy { $0.worker == "one" })
    #expect(events.last?.to == "background" && events.last?.text.contains("woken") == true)
    #expect(events.last?.seconds != nil)

    let past = try daemon.done("events", "--worker", "one")
    #expect(past.contains("one background → suspended: in the background for"))
    #expect(past.contains("one suspended → background: woken on request"), "\(past)")
    #expect(!past.contains(" two launching"), "\(past)")
    let lines = try daemon.done("events", "-n", "2", "--json").split(separator: "\n")
    #expect(lines.count == 2)
    for line in lines { _ = try WireCodec.decode(EventRecord.self, from: Array(line.utf8)) }
    #expect(try daemon.verb("events", "--worker", "ghost").code == 3)
  }

  @Test("`report` counts events by worker and week, and keeps its counts when the daemon is killed")
  func report() throws {
    let daemon = try TestDaemon("workers: { brief: { command: [sh, -c, \"exit 3\"] } }")
    try daemon.wait("brief", toBe: "terminated")
    let counts = try daemon.json(WeeksReport.self, "report").weeks
    #expect(counts.first?.worker == "brief" && counts.first?.crashes == 1)
    #expect(counts.first?.launches == 1)
    try daemon.restartAfterCrash()
    try daemon.wait("brief", toBe: "terminated")
    _ = try eventually {
      try daemon.json(WeeksReport.self, "report").weeks.first?.crashes == 2
    }
    let table = try daemon.done("report")
    #expect(table.contains("week of ") && table.contains("brief"), "\(table)")
    #expect(try daemon.json(WeeksReport.self, "report").weeks.reduce(0) { $0 + $1.crashes } == 2)
  }

  @Test("`report` groups crashes by cause, and shows the last lines that the newest one wrote")
  func crashes() throws {
    let daemon = try TestDaemon(
      """
      workers:
        faulty:
          command: [sh, -c, "echo reads the index; echo no such shard; exit 3"]
          restart: no
        silent: { command: [sh, -c, "kill -SEGV $$"], restart: no }
      """)
    #expect(try eventually { try daemon.json(WeeksReport.self, "report").crashes.count == 2 })
    // It ends again before it is ready, which the verb reports.
    _ = try daemon.verb("start", "faulty")
    #expect(
      try eventually {
        try daemon.json(WeeksReport.self, "report").crashes.contains { $0.count == 2 }
      })
    let crashes = try daemon.json(WeeksReport.self, "report").crashes
    #expect(crashes.map(\.worker) == ["faulty", "silent"])
    #expect(crashes.map(\.cause.code) == ["exited", "signaled"])
    #expect(crashes.first?.cause.status == 3 && crashes.last?.cause.signal == SIGSEGV)
    #expect(crashes.map(\.lastLines) == [["reads the index", "no such shard"], []])
    let text = try daemon.done("report", "--worker", "faulty")
    #expect(text.contains("  faulty: exited with status 3, 2 times, last on 20"), "\(text)")
    #expect(text.contains("    | no such shard\n") && !text.contains("silent"), "\(text)")
  }
}

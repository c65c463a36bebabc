import ArgumentParser
import Control
import Journal
import Lifecycle
import Policy

struct ReplayCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "replay",
    abstract: "Run a journal through the engine again, with the same policy or another.",
    discussion: """
      Without --policy it checks that the engine decides as recorded. The exit code is 0 if it \
      does, and 1 if it doesn't, or if a part of the journal can't be read.

      With --policy it shows what another policy would have done. Events from outside stay as \
      recorded: requests, activity, connections, crashes, the host's memory. The outcomes of other \
      decisions are modelled from what the journal has of the same worker, or of the others; \
      nothing fails. A worker that is needed, and that the other policy has terminated, is \
      launched again. docs/journal.md has the model. With --set alone the other policy is the \
      recorded one, with these changes.

      With several policies there is one table, with a line for each and all workers together. \
      HELD and SAVED are averages: the memory that workers held, and the memory that hibernation \
      saved. WAITING is the time of all resumes from hibernation and of relaunches. RELAUNCHED \
      counts launches of workers that had been terminated.

      ENDED counts terminations for memory and by watchdogs. SLEPT counts suspensions. WAKE COST \
      is the time of all resumes from hibernation together.

      Examples:
        dormouse replay
        dormouse replay --policy server
        dormouse replay --policy server,android,./mine.yaml
        dormouse replay --set hibernate.after=5m
      """)
  @Option(
    help: ArgumentHelp(
      "Compare with these policies: names or files.", valueName: "a,b,…"),
    completion: .policies)
  var policy: String?
  @OptionGroup var settings: SettingOptions
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(
    help: ArgumentHelp(
      "A journal's directory, or one of its files. Default: the running daemon's journal.",
      valueName: "journal"), completion: .file())
  var journal: String?

  func run() throws {
    try settings.check()
    var others = try policies()
    let comparesAny = policy != nil || !settings.isEmpty
    let segments = try JournalFiles.segments(at: try path())
    var player = JournalPlayer()
    var check = DeterminismCheck()
    var model = CostModel()
    var recorded: LifecyclePolicy?
    player.play(segments) { step, engine in
      check.visit(step)
      guard comparesAny else { return }
      model.visit(step, engine)
      recorded = engine.policy
    }
    var report = ReplayReport(check, player.problems)
    if policy == nil, comparesAny, let recorded { others = [("changed", recorded)] }
    if comparesAny { report.add(try compare(segments, with: others, model: model)) }
    if json { try Output.json(report) } else { try show(report, player.problems) }
    guard !comparesAny else { return }
    if report.differingEvents > 0 {
      throw CommandFailure(.notDone, "different decisions after \(report.differingEvents) events")
    }
    if !player.problems.allSatisfy(\.isHarmless) {
      throw CommandFailure(.notDone, "parts of the journal can't be replayed")
    }
  }

  private typealias Labelled = (label: String, policy: LifecyclePolicy)

  /// Returns the policies with their names. If two have the same name, each is called as it was
  /// given.
  private func policies() throws -> [Labelled] {
    let given = (policy ?? "").split(separator: ",").map(String.init)
    guard policy == nil || !given.isEmpty else {
      throw CommandFailure(.usage, "--policy names no policy")
    }
    let loaded = try given.map(PolicyCheck.usable)
    return zip(given, loaded).map { text, policy in
      (loaded.count { $0.name == policy.name } > 1 ? text : policy.name, policy)
    }
  }

  private func path() throws -> String {
    if let journal { return journal }
    var daemon = try connection.connect()
    return try daemon.journalDirectory()
  }

  /// Compares all policies in one pass over the journal.
  private func compare(
    _ segments: [JournalSegment], with others: [Labelled], model: CostModel
  ) throws -> [ReplayReport.Compared] {
    var worlds = try others.map {
      try WhatIf(policy: settings.applied(to: $0.policy), model: model)
    }
    var player = JournalPlayer()
    var wallOffset: Int64 = 0
    player.play(segments) { step, engine in
      wallOffset = step.wall.nanoseconds &- step.at.nanoseconds
      for index in worlds.indices { worlds[index].visit(step, engine) }
    }
    for index in worlds.indices { worlds[index].finish() }
    return zip(others, worlds).map { ($0.label, $1, wallOffset) }
  }

  private func show(_ report: ReplayReport, _ problems: [JournalProblem]) throws {
    let clock = Clock()
    JournalFiles.complain(problems)
    try Output.write(
      renderReplay(report, clock: { clock($0) }, color: Terminal.showsColor))
    guard let comparison = report.comparison else {
      guard let totals = report.totals else { return }
      return try Output.show { "\n" + renderTotals(totals, width: $0, color: $1) }
    }
    try Output.show {
      "\n" + renderComparison(comparison, clock: { clock($0) }, width: $0, color: $1)
    }
  }
}

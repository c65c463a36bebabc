import ArgumentParser
import Control
import Daemon
import Journal
import Lifecycle
import Policy
import PolicyFile

struct ReplayCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "replay",
    abstract: "Run a journal through the engine again, with the same policy or another.",
    discussion: """
      Without --policy it checks that the engine decides as recorded. The exit code is 0 if it does, and \
      1 if it doesn't, or if a part of the journal can't be read.

      With --policy it shows what another policy would have done. What came from outside stays as \
      recorded: requests, activity, connections, crashes, the host's memory. The outcomes of other \
      decisions are modelled from what the journal has of the same worker, or of the others; nothing \
      fails. A worker that is needed, and that the other policy has terminated, is launched again. \
      docs/journal.md has the model.

      ENDED counts terminations for memory and by watchdogs. SLEPT counts suspensions. WAKE COST is the \
      time of all resumes from hibernation together.

      Examples:
        dormouse replay
        dormouse replay --policy server
      """)
  @Option(
    help: ArgumentHelp(
      "Compare with this policy: a name or a file.", valueName: "policy"),
    completion: .policies)
  var policy: String?
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(
    help: ArgumentHelp(
      "A journal's directory, or one of its files. Default: the running daemon's journal.",
      valueName: "journal"), completion: .file())
  var journal: String?

  func run() throws {
    let other = try otherPolicy()
    let segments = try JournalFiles.segments(at: try path())
    var player = JournalPlayer()
    var check = DeterminismCheck()
    var model = CostModel()
    player.play(segments) { step, engine in
      check.visit(step)
      if other != nil { model.visit(step, engine) }
    }
    var report = ReplayReport(check, player.problems)
    if let other { report.comparison = try compare(segments, with: other, model: model) }
    if json { try Output.json(report) } else { try show(report, player.problems) }
    guard other == nil else { return }
    if report.differingEvents > 0 {
      throw CommandFailure(
        exit: .notDone,
        text: "different decisions after \(report.differingEvents) events")
    }
    if !player.problems.allSatisfy(\.isHarmless) {
      throw CommandFailure(exit: .notDone, text: "parts of the journal can't be replayed")
    }
  }

  private func otherPolicy() throws -> LifecyclePolicy? {
    guard let policy else { return nil }
    let result = PolicyCheck.ofThisProcess().policy(policy)
    PolicyCheck.complain(result.diagnostics)
    guard let value = result.value else {
      throw CommandFailure(
        exit: .badConfiguration, text: "the policy \(escaped(policy)) can't be used")
    }
    return value.policy
  }

  private func path() throws -> String {
    if let journal { return journal }
    var daemon = try connection.connect()
    guard let directory = try daemon.journal().directory else {
      throw CommandFailure(
        exit: .notDone, text: "the daemon keeps no journal: `journal: { enabled: false }`")
    }
    return directory
  }

  private func compare(
    _ segments: [JournalSegment], with policy: LifecyclePolicy, model: CostModel
  ) throws -> PolicyComparison {
    var other = try WhatIf(policy: policy, model: model)
    var player = JournalPlayer()
    var wallOffset: Int64 = 0
    player.play(segments) { step, engine in
      wallOffset = step.wall.nanoseconds &- step.at.nanoseconds
      other.visit(step, engine)
    }
    other.finish()
    return PolicyComparison(other, wallOffset: wallOffset)
  }

  private func show(_ report: ReplayReport, _ problems: [JournalProblem]) throws {
    let clock = Clock()
    JournalFiles.complain(problems)
    try Output.write(
      renderReplay(report, clock: { clock($0) }, color: Terminal.showsColor))
    guard let comparison = report.comparison else { return }
    try Output.write(
      "\n"
        + renderComparison(
          comparison, clock: { clock($0) }, width: Terminal.width, color: Terminal.showsColor))
  }
}

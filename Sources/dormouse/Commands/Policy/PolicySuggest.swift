import ArgumentParser
import Control
import Deciding
import Lifecycle
import Policy
import PolicyFile

/// The verb `policy suggest`.
struct PolicySuggestCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "suggest",
    abstract: "Find the smallest change of the policy that would have saved most.",
    discussion: """
      It reads when each worker was used from the journal, and simulates that history under the \
      policy in effect and under changes of it: first of one key, then of two, where two are \
      clearly better. A suggestion holds less memory for little waiting, or waits less. \
      --wait-worth is the worth of waiting: with 100MB, one second of all waits together costs \
      as much as 100 MB held for an hour.

      The shipped policies are compared over the same history, with this machine's memory.

      At most three changes are printed, each with a line for dormouse.yaml, and as --set to try \
      it with `dormouse simulate --journal` and `dormouse replay`. If no change would have been \
      clearly better, the verb reports that (exit code 0). The exit code is 1 if the history is \
      too short.

      Examples:
        dormouse policy suggest
        dormouse policy suggest --since 7d --worker web
        dormouse policy suggest --policy server --json
      """)

  @Option(
    help: ArgumentHelp(
      "Change this policy, a name or a file. Default: the one in effect.", valueName: "policy"),
    completion: .policies)
  var policy: String?
  @Option(
    help: ArgumentHelp(
      "Change the policy of this worker only; repeatable, for several workers.",
      valueName: "name"), completion: .workers)
  var worker: [String] = []
  @Option(
    help: ArgumentHelp(
      "Begin this long ago, such as 24h, 7d or 2w. Default: all of the journal.",
      valueName: "time"))
  var since: Since?
  @Option(
    help: ArgumentHelp("The history must be at least this long.", valueName: "time"))
  var minHistory = Since.hour
  @Option(
    help: ArgumentHelp(
      "A second of waiting is worth this much memory for an hour. Default: 100MB.",
      valueName: "size"), transform: sizeOption)
  var waitWorth: Double?
  @Flag(help: "Simulate all of a long history for each change, which may take minutes.")
  var thorough = false
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(
    help: ArgumentHelp(
      "A journal's directory, or one of its files. Default: the daemon's journal.",
      valueName: "journal"), completion: .file())
  var journal: String?

  func run() throws {
    let base = try policy.map(PolicyCheck.usable)
    let history = try HistorySpan(journal: journal, since: since)
      .read(connection, minLength: minHistory.duration)
    var search = PolicySearch(
      history, base: base, only: try chosen(history),
      others: Self.shipped, worth: waitWorth ?? PolicySearch.defaultWorth,
      budget: thorough ? nil : PolicySearch.defaultBudget)
    let result = try search.run { Progress.show("trying changes", $0) }
    Progress.clear()
    try Output.show(result, asJSON: json) { renderSuggestions($0, width: $1, color: $2) }
  }

  private static var shipped: [LifecyclePolicy] {
    let library = PolicyLibrary.builtIn
    return library.names.compactMap { library.load($0).value }
  }

  private func chosen(_ history: RecordedHistory) throws -> Set<WorkerID>? {
    guard !worker.isEmpty else { return nil }
    let names = history.trace.workers.map(\.name)
    for name in worker where !names.contains(name) {
      throw CommandFailure(
        .unknownWorker,
        "the journal has no worker `\(escaped(name))` in that time"
          + hint(for: name, among: names))
    }
    return Set(worker.map { WorkerID($0) })
  }
}

import ArgumentParser
import Control

struct ExplainCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain",
    abstract: "Explain why a worker is in its state, and what changes it; or which one is next.",
    discussion: """
      With a worker: why it is in its state, what keeps it from the next state (with numbers), \
      what would change its state, and which key of the policy decides. With --next: the order in \
      which workers are terminated and hibernated when memory gets short, and why. With --savings: \
      the workers that keep memory, the largest first, and why each of them isn't asleep. Both end \
      with what would let the worker sleep: a line for dormouse.yaml, or an option.

      Examples:
        dormouse explain web
        dormouse explain --next
        dormouse explain --savings
      """)
  @Flag(help: "Show the order of termination and of hibernation.") var next = false
  @Flag(help: "Show which workers keep memory, and why each isn't asleep.") var savings = false
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "The worker.", completion: .workers) var name: String?
  /// Other verbs have this option. Here its error shows how the worker is named.
  @Option(help: .hidden) var worker: String?

  func validate() throws {
    if let worker {
      throw ValidationError(
        "the worker is named without an option: `dormouse explain \(escaped(worker))`")
    }
    if [next, savings, name != nil].count(where: { $0 }) != 1 {
      throw ValidationError("name a worker, or ask for --next or --savings, one of the three")
    }
  }

  func run() throws {
    var daemon = try connection.connect()
    if savings {
      let subject = "the workers that keep memory"
      let report = try daemon.ask(.explainSavings, for: \.kept, about: subject)
      try Output.show(report, asJSON: json) { renderKeptMemory($0, width: $1, color: $2) }
    } else if let name {
      let report = try daemon.ask(.explain, worker: name, for: \.explanation)
      try Output.show(report, asJSON: json) { renderExplanation($0, width: $1, color: $2) }
    } else {
      let report = try daemon.ask(.explain, for: \.ranking, about: "the order")
      try Output.show(report, asJSON: json) { renderRanking($0, width: $1, color: $2) }
    }
  }
}

struct ShadowCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "shadow",
    abstract: "Log what the policy would do with workers, and don't do it.",
    discussion: """
      The worker runs as without Dormouse. `status` shows what the policy would have freed. \
      `dormouse enforce` ends shadow mode.
      """)
  static let verb = ControlRequest.Verb.shadow
  @OptionGroup var selection: WorkerSelection
}

struct EnforceCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "enforce", abstract: "Apply the policy to workers again, after `shadow`.")
  static let verb = ControlRequest.Verb.enforce
  @OptionGroup var selection: WorkerSelection
}

import ArgumentParser
import Control

struct ExplainCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain",
    abstract: "Explain why a worker is in its state, and what changes it; or which one is next.",
    discussion: """
      With a worker: why it is in its state, everything that keeps it from the next one, with the \
      numbers, what would move it, and which key of the policy decides. With --next: who is \
      terminated and who is hibernated first when memory gets short, and why in this order.
      """)
  @OptionGroup var connection: ConnectionOptions
  @Flag(help: "As JSON.") var json = false
  @Flag(help: "The order of termination and of hibernation.") var next = false
  @Argument(help: "A worker.", completion: .workers) var name: String?

  func validate() throws {
    if next == (name != nil) {
      throw ValidationError("name a worker, or ask for --next, one of the two")
    }
  }

  func run() throws {
    var daemon = try connection.connect()
    let response = try daemon.ask(.explain, worker: name)
    if let name {
      guard let report = response.explanation else { throw CommandFailure.noReport(of: name) }
      if json { return try Output.json(report) }
      try Output.write(renderExplanation(report, width: Terminal.width, color: Terminal.showsColor))
    } else {
      guard let report = response.ranking else { throw CommandFailure.noReport(of: "the order") }
      if json { return try Output.json(report) }
      try Output.write(renderRanking(report, width: Terminal.width, color: Terminal.showsColor))
    }
  }
}

struct ShadowCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "shadow",
    abstract: "Log what the policy would do with workers, and don't do it.")
  static let verb = ControlRequest.Verb.shadow
  static let intent = Intent.shadow
  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var selection: WorkerSelection
}

struct EnforceCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "enforce", abstract: "Apply the policy to workers again, after `shadow`.")
  static let verb = ControlRequest.Verb.enforce
  static let intent = Intent.enforce
  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var selection: WorkerSelection
}

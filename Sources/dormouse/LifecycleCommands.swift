import ArgumentParser
import Control

/// A verb that is applied to workers by name, each of which answers with a sentence.
protocol WorkerCommand: ParsableCommand {
  static var verb: ControlRequest.Verb { get }
  var connection: ConnectionOptions { get }
  var names: [String] { get }
}

extension WorkerCommand {
  func run() throws {
    var daemon = try connection.connect()
    try daemon.apply(Self.verb, to: names)
  }
}

extension DaemonConnection {
  /// Asks for all at once, so that none waits for another, and tells in the order of the names.
  /// One that fails keeps no other from happening; the first failure decides the exit code.
  mutating func apply(_ verb: ControlRequest.Verb, to names: [String]) throws {
    var sent: [(id: UInt64, name: String)] = []
    for name in names { sent.append((try client.send(verb, worker: name), name)) }
    var failures: [CommandFailure] = []
    for (id, name) in sent {
      let response = try wait(for: id, what: "\(verb.rawValue) \(name)")
      if response.result == .done {
        try Output.line(escaped(response.text))
      } else {
        failures.append(CommandFailure(response))
      }
    }
    guard let first = failures.first else { return }
    for failure in failures { Output.complain(failure.text) }
    throw ExitCode(first.exit.rawValue)
  }
}

struct StartCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "start", abstract: "Launch workers; answered when they are ready.")
  static let verb = ControlRequest.Verb.start
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "Workers.") var names: [String]
}

struct StopCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stop",
    abstract: "End workers gracefully; sleeping ones are woken first, to save their work.")
  @OptionGroup var connection: ConnectionOptions
  @Flag(help: "All workers; the daemon stays.") var all = false
  @Argument(help: "Workers.") var names: [String] = []

  func validate() throws {
    if all, !names.isEmpty { throw ValidationError("Name workers or use --all, not both.") }
    if !all, names.isEmpty { throw ValidationError("Name workers, or use --all.") }
  }

  func run() throws {
    var daemon = try connection.connect()
    var names = names
    if all {
      names = try (daemon.ask(.ps).workers ?? [])
        .filter { $0.state != "terminated" }.map(\.name)
      if names.isEmpty { try Output.line("no worker runs") }
    }
    try daemon.apply(.stop, to: names)
  }
}

struct ForegroundCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "foreground", abstract: "Bring a worker to the front, waking it if it sleeps.")
  static let verb = ControlRequest.Verb.foreground
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "Workers.") var names: [String]
}

struct BackgroundCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "background", abstract: "Send a worker to the background.")
  static let verb = ControlRequest.Verb.background
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "Workers.") var names: [String]
}

struct SuspendCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "suspend", abstract: "Take the processor from a worker.")
  static let verb = ControlRequest.Verb.suspend
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "Workers.") var names: [String]
}

struct HibernateCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "hibernate", abstract: "Move a worker's memory to disk; the process stays.")
  static let verb = ControlRequest.Verb.hibernate
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "Workers.") var names: [String]
}

struct WakeCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "wake", abstract: "Resume a sleeping worker, into the background.")
  static let verb = ControlRequest.Verb.wake
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "Workers.") var names: [String]
}

struct TerminateCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "terminate",
    abstract: "End a worker as lack of memory would: a hibernated one isn't woken first.")
  static let verb = ControlRequest.Verb.terminate
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "Workers.") var names: [String]
}

struct WarnCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "warn", abstract: "Send a memory warning, and tell what it gave back.")
  static let verb = ControlRequest.Verb.warn
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "Workers.") var names: [String]
}

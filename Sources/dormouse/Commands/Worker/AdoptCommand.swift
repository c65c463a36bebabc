import ArgumentParser
import Control

struct AdoptCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "adopt",
    abstract: "Manage processes that another supervisor has started.",
    usage: "dormouse adopt <name> (--pid <pid> | --unit <unit> | --cgroup <path>) [<options>]",
    discussion: """
      The processes become one worker. It is suspended, hibernated and woken as any worker. Dormouse \
      doesn't start or stop it: its own supervisor does. A sleeping one is stopped by SIGSTOP, which its \
      parent can see. A signal from its supervisor wakes it. `dormouse release` wakes it and ends the \
      management.

      Examples:
        dormouse adopt redis --unit redis.service
        dormouse adopt notebook --pid 4711
      """)

  @Option(help: "Adopt this process and its descendants.") var pid: Int32?
  @Option(help: "Adopt all processes of this systemd unit, such as redis.service.")
  var unit: String?
  @Option(
    help: ArgumentHelp(
      "Adopt all processes of this directory of the cgroup2 tree.", valueName: "path"),
    completion: .directory)
  var cgroup: String?
  @Option(
    help: ArgumentHelp(
      "0 to 100. Among workers in the same state, a higher one is terminated later.",
      valueName: "number"))
  var importance: Int?
  @Flag(help: "Let the policy terminate it for lack of memory, as other workers.")
  var mayTerminate = false
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "A name for the worker.") var name: String

  func validate() throws {
    if [pid != nil, unit != nil, cgroup != nil].count(where: { $0 }) != 1 {
      throw ValidationError("Give one of --pid, --unit and --cgroup.")
    }
    if let importance, !(0...100).contains(importance) {
      throw ValidationError("--importance is a number from 0 to 100, not \(importance).")
    }
    if let cgroup, !cgroup.hasPrefix("/") {
      throw ValidationError("--cgroup takes an absolute path, such as /sys/fs/cgroup/NAME.")
    }
  }

  func run() throws {
    var daemon = try connection.connect()
    let adoption = AdoptionSpecification(
      pid: pid, cgroup: cgroup ?? unit, importance: importance, mayBeTerminated: mayTerminate)
    try daemon.report(
      daemon.request(.adopt, worker: name, adoption: adoption), of: "adopt", worker: name,
      json: json)
  }
}

struct ReleaseCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "release",
    abstract: "Wake adopted workers, and stop managing them.")
  static let verb = ControlRequest.Verb.release
  static let intent = Intent.release
  @OptionGroup var selection: WorkerSelection
  @OptionGroup var connection: ConnectionOptions
}

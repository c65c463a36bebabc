import ArgumentParser
import Control

struct AdoptCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "adopt",
    abstract: "Manage processes that another supervisor has started.",
    usage: "dormouse adopt <name> (--pid <pid> | --unit <unit> | --cgroup <path>)",
    discussion: """
      It is suspended, hibernated and woken as any worker, and never started or stopped: that stays \
      with whoever supervises it. With --pid it is that process and its descendants; with --unit or \
      --cgroup it is every process in that group of the cgroup2 tree. Asleep, they are stopped by \
      signal, which their parent sees; what their manager wants of them wakes them. `dormouse \
      release` gives it back.
      """)

  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "The worker's name.") var name: String
  @Option(help: "A running process.") var pid: Int32?
  @Option(help: "A unit of systemd, such as redis.service.") var unit: String?
  @Option(
    help: ArgumentHelp("A directory of the cgroup2 tree.", valueName: "path"),
    completion: .directory)
  var cgroup: String?
  @Option(help: "0-100: raises it among workers of the same state when memory runs out.")
  var importance: Int?
  @Flag(help: "When memory runs out it may be terminated, as other workers are.")
  var mayTerminate = false

  @Flag(help: "Print the outcome as JSON (docs/json.md).") var json = false

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
  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var selection: WorkerSelection
}

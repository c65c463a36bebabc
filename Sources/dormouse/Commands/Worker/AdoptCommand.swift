import ArgumentParser
import Control
import Daemon
import Linux
import Policy

struct AdoptCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "adopt",
    abstract: "Manage processes that another supervisor has started.",
    usage: """
      dormouse adopt [<name>] (--pid <pid> | --unit <unit> | --cgroup <path>) [<options>]
      dormouse adopt --dry-run [--config <path>] [--json]
      """,
    discussion: """
      The processes become one worker. It is suspended, hibernated and woken as any worker. \
      Dormouse doesn't start or stop it: its own supervisor does. A sleeping one is stopped by \
      SIGSTOP, which its parent can see. A signal from its supervisor wakes it. `dormouse release` \
      wakes it and ends the management. Without a name it is called after the unit or the group, \
      or after the process's program or script: `x` for `python3 x.py`.

      The worker has the machine's policy, or that of --policy, with the values of --set. What \
      applies to all workers together (memory, pressure, ladder, foreground.mode) stays the \
      machine's.

      With rules in dormouse.yaml (`adopt:`) the daemon adopts what appears and matches. With \
      --dry-run nothing is adopted: with a process the verb shows what it would adopt, and without \
      one it lists what the rules match. These are the rules of the running daemon, or without a \
      daemon, or with --config, those of the file.

      Examples:
        dormouse adopt redis --unit redis.service
        dormouse adopt notebook --pid 4711 --policy server --set hibernate.after=5m
        dormouse adopt shop --pid 4712 --health-check 8081/healthz
        dormouse adopt --dry-run
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
  @Option(
    help: ArgumentHelp("The worker's policy, by name or path.", valueName: "name"),
    completion: .file(extensions: ["yaml", "yml"]))
  var policy: String?
  @Option(
    help: ArgumentHelp(
      "Replace a value of the policy, such as hibernate.after=5m. May be repeated.",
      valueName: "key=value"))
  var set: [String] = []
  @Flag(help: "Only log decisions about the worker; `dormouse enforce` applies them.")
  var shadow = false
  @Option(
    help: ArgumentHelp(
      "Wake it together with this adopted worker, and that one with it. May be repeated.",
      valueName: "name"))
  var wakeWith: [String] = []
  @Option(
    help: ArgumentHelp(
      "Answer this health check while it sleeps, without waking it. May be repeated.",
      valueName: "port[/path]"))
  var healthCheck: [String] = []
  @Flag(help: "Adopt nothing: show what would be adopted, or what the rules of `adopt:` match.")
  var dryRun = false
  @Option(
    help: ArgumentHelp(
      "With --dry-run: try the rules of this configuration, without the daemon.",
      valueName: "path"),
    completion: .file())
  var config: String?
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "A name for the worker.") var name: String?

  func validate() throws {
    if dryRun {
      try validateDryRun()
      if !isNamed { return }
    }
    if config != nil, !dryRun { throw ValidationError("--config needs --dry-run.") }
    if [pid != nil, unit != nil, cgroup != nil].count(where: { $0 }) != 1 {
      throw ValidationError("Give one of --pid, --unit and --cgroup.")
    }
    try checkNumber("--importance", importance, in: 0...100)
    if let cgroup, !cgroup.hasPrefix("/") {
      throw ValidationError("--cgroup takes an absolute path, such as /sys/fs/cgroup/NAME.")
    }
    for check in healthCheck {
      do throws(AsleepAnswerError) { _ = try AsleepAnswer(text: check) } catch {
        throw ValidationError("--health-check: \(error).")
      }
    }
  }

  private var isNamed: Bool { pid != nil || unit != nil || cgroup != nil || name != nil }

  private func validateDryRun() throws {
    let isSet =
      importance != nil || mayTerminate || policy != nil || !set.isEmpty || shadow
      || !wakeWith.isEmpty || !healthCheck.isEmpty
    if isSet, !isNamed {
      throw ValidationError(
        "--dry-run without a process lists what the rules match, and takes no policy.")
    }
    if isNamed, config != nil {
      throw ValidationError("--config tries the rules of a configuration, not one process.")
    }
    if config != nil, connection.socket != nil {
      throw ValidationError("--socket asks a daemon, which a configuration by name doesn't need.")
    }
  }

  func run() throws {
    if dryRun, !isNamed {
      return try Output.show(preview(), asJSON: json) {
        renderAdoptionPreview($0, width: $1, color: $2)
      }
    }
    var daemon = try connection.connect()
    let name: String
    if let given = self.name { name = given } else { name = try daemon.freeName(usualName) }
    if dryRun { return try daemon.forecastAdoption(of: subject(), as: name, json: json) }
    let adoption = AdoptionSpecification(
      pid: pid, cgroup: cgroup ?? unit, importance: importance, mayBeTerminated: mayTerminate,
      policy: policy.map(policyForDaemon), settings: set.isEmpty ? nil : set,
      shadow: shadow ? true : nil, wakeWith: wakeWith.isEmpty ? nil : wakeWith,
      healthChecks: healthCheck.isEmpty ? nil : healthCheck)
    let response = try daemon.request(.adopt, worker: name) { $0.adoption = adoption }
    try daemon.report(response, of: "adopt", worker: name, json: json)
  }

  /// The text for `--dry-run` about the processes that would be adopted.
  private func subject() throws -> String {
    guard let pid else { return "all processes of \(escaped(unit ?? cgroup ?? ""))" }
    do throws(SystemCallError) {
      let commandLine = try ProcessCommand.read(pid).arguments.joined(separator: " ")
      return "pid \(pid) (\(escaped(String(commandLine.prefix(60))))) and its descendants"
    } catch { throw CommandFailure(.notDone, error.description) }
  }

  private var usualName: String {
    get throws {
      if let pid {
        do throws(SystemCallError) {
          return NameRule.name(of: try ProcessCommand.read(pid).arguments)
        } catch { throw CommandFailure(.notDone, error.description) }
      }
      let last = (unit ?? cgroup ?? "").split(separator: "/").last.map(String.init) ?? ""
      let name = ["service", "scope", "slice"].first { last.hasSuffix(".\($0)") }
        .map { String(last.dropLast($0.count + 1)) }
      return NameRule.name(of: [name ?? last])
    }
  }

  private func preview() throws -> AdoptionPreviewReport {
    if config == nil, connection.socket != nil || connection.hasDaemon {
      var daemon = try connection.connect()
      return try daemon.ask(.previewAdoption, for: \.adoption, about: "the rules")
    }
    let path = try config ?? PolicySubject.defaultConfiguration()
    if config == nil {
      Output.complain("no daemon is running; these are the rules of \(escaped(path))")
    }
    let result = PolicyCheck.ofThisProcess().configuration(path)
    PolicyCheck.complain(result.errors)
    guard let rules = result.value?.adoption else {
      throw CommandFailure(.badConfiguration, "nothing shown: fix the errors above")
    }
    guard let report = AdoptionPreview(rules).perform() else {
      throw CommandFailure(.notDone, "/proc can't be listed")
    }
    return report
  }
}

struct ReleaseCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "release",
    abstract: "Wake adopted workers, and stop managing them.")
  static let verb = ControlRequest.Verb.release
  @OptionGroup var selection: WorkerSelection
}

extension DaemonConnection {
  fileprivate mutating func forecastAdoption(
    of subject: String, as name: String, json: Bool
  ) throws {
    guard NameRule.allows(name) else {
      throw CommandFailure(
        .notDone, "`\(escaped(name))` is not a valid worker name: use \(NameRule.text)")
    }
    if let worker = try ask(.ps).workers?.first(where: { $0.name == name }),
      worker.state != "terminated"
    {
      throw CommandFailure(
        .notDone, "\(escaped(name)) would not be adopted: a worker of this name runs")
    }
    let text = "\(escaped(name)) would be adopted: \(subject), if nothing prevents it"
    if !json { return try Output.line(text) }
    try Output.json(
      OutcomeReport(
        verb: "adopt", code: "done", text: text, isDryRun: true,
        workers: [OutcomeReport.Worker(worker: name, code: "planned", text: text)]))
  }
}

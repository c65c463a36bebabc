import Control
import Glibc
import Linux
import TestSupport
import Testing

/// The JSON of `ps` and `status`.
struct Listing: Decodable {
  var daemon: DaemonReport?
  var workers: [WorkerReport]
}

/// The conditions that a daemon under test runs in, as far as workers' sleep depends on them.
enum Setting: String, CaseIterable, CustomTestStringConvertible {
  /// Workers are frozen in cgroups, and hibernated ones rest frozen.
  case frozen
  /// Workers are stopped by signal, and hibernated ones rest traced.
  case traced
  /// A daemon of a user without rights.
  case ordinaryUser

  static let available: [Setting] = allCases.filter {
    switch $0 {
    case .frozen:
      if !TestMachine.hasCgroups { notTestedHere("no cgroup for workers can be made here") }
      return TestMachine.hasCgroups
    case .traced: return true
    case .ordinaryUser:
      if !TestMachine.canBecomeNobody { notTestedHere("only root can be two users") }
      return TestMachine.canBecomeNobody
    }
  }

  /// The settings in which the daemon runs as the user that runs the tests.
  static var ofTestUser: [Setting] { available.filter { $0 != .ordinaryUser } }

  var testDescription: String { rawValue }
}

/// `dormouse daemon` in a directory of its own. The release of this object always ends the daemon
/// and its workers.
final class TestDaemon {
  let scratch: Scratch
  let setting: Setting
  let socket: String
  let state: String
  let configuration: String
  /// The log of all daemons that ran with this object.
  let log: String
  private let program: [String]
  private var environment = Command(arguments: []).environment
  private(set) var process: SpawnedProcess?

  var pid: Int32 { process?.pid ?? 0 }

  /// Prepares everything and starts the daemon. `configuration`: the text of dormouse.yaml;
  /// `wrapper`: a program that starts it. `isCalm`: see `calm`.
  init(
    _ configuration: String, setting: Setting = .traced, state: String? = nil, starts: Bool = true,
    wrapper: [String] = [], isCalm: Bool = true
  ) throws {
    scratch = try Scratch()
    self.setting = setting
    socket = "\(scratch.path)/control.sock"
    self.state = state ?? "\(scratch.path)/state"
    log = "\(scratch.path)/daemon.log"
    self.configuration = try scratch.write(
      "dormouse.yaml", Self.named(isCalm ? Self.calm(configuration) : configuration))
    if setting != .frozen { environment["DORMOUSE_CGROUP"] = "/proc/nowhere" }
    // A late turn of its event loop fails the test at its end; it doesn't end the daemon before.
    if environment["DORMOUSE_LOOP_CHECK"] == nil { environment["DORMOUSE_LOOP_CHECK"] = "report" }
    if setting == .ordinaryUser {
      program = try wrapper + TestMachine.asNobody(scratch, with: "http_state.py")
    } else {
      program = wrapper + [TestMachine.executable]
    }
    if starts { try start() }
  }

  /// The machine that the tests run on stalls now and then for 0.2 s, and policies terminate
  /// sleeping workers for that. A test that isn't about pressure must not depend on it.
  private static func calm(_ text: String) -> String {
    let subjects = ["pressure:", "budget:", "mode: shadow", "mode: enforce"]
    if subjects.contains(where: { text.contains($0) }) { return text }
    let rule = "pressure: { warning: never, urgent: never, critical: { available_below: 1% } }"
    for (start, entry) in [
      ("policy_overrides:\n", "  \(rule)\n"), ("policy_overrides: { ", "\(rule), "),
    ] where text.hasPrefix(start) {
      return start + entry + String(text.dropFirst(start.count))
    }
    return text
  }

  /// Tests count on the values of ios-5. Without a name the policy is `standard`, which
  /// DefaultPolicyTests tests.
  private static func named(_ text: String) -> String {
    if text.hasPrefix("policy:") || text.contains("\npolicy:") { return text }
    // At the end, so that lines keep their numbers.
    return text + (text.isEmpty || text.hasSuffix("\n") ? "" : "\n") + "policy: ios-5\n"
  }

  /// Writes another dormouse.yaml, for the next `reload` or start.
  func rewrite(_ text: String) throws {
    _ = try scratch.write("dormouse.yaml", Self.named(text))
  }

  /// Sets a variable of the daemon's environment; call it before `start`.
  func set(_ name: String, _ value: String) { environment[name] = value }

  deinit {
    stop(timeout: .seconds(1))
    removeLeftovers()
    let late = logText.split(separator: "\n").filter { $0.contains("event loop was blocked for") }
    if !late.isEmpty { Issue.record("\(late.joined(separator: "\n"))") }
  }

  // MARK: its life

  /// Starts the daemon and returns when it answers.
  func start() throws {
    process = try launch()
    let answers = try eventually { [pid] in
      if try self.hasEnded() { return true }
      return (try? self.ask(.ps))?.daemon?.pid == pid
    }
    if try hasEnded() { throw TestFailure("the daemon didn't start: \(logText)") }
    guard answers else { throw TestFailure("the daemon doesn't answer: \(logText)") }
  }

  /// Starts another daemon of the same kind, which may fail.
  func launch(_ options: [String]? = nil) throws -> SpawnedProcess {
    var command = Command(arguments: program + ["daemon"])
    command.arguments +=
      options ?? ["--config", configuration, "--socket", socket, "--state-directory", state]
    command.environment = environment
    command.directory = scratch.path
    return try command.start(output: log, error: log)
  }

  func hasEnded() throws -> Bool {
    guard let process else { return true }
    return try pollDescriptor(process.pidfd.raw, for: POLLIN, until: Deadline(in: .zero))
  }

  /// Ends the daemon by SIGKILL when each worker's process has a record: without one the next
  /// daemon doesn't find it. The workers continue to run.
  func crash() throws {
    try waitForProcessesInRecords()
    kill(pid, SIGKILL)
    try process?.wait(.seconds(60))
    process = nil
  }

  /// Kills the daemon, and starts another one.
  func restartAfterCrash() throws {
    try crash()
    try start()
  }

  /// Its exit code, after it has ended by itself.
  func waitForEnd(_ limit: Duration = .seconds(60)) throws -> Int32? {
    guard let process else { throw TestFailure("no daemon") }
    self.process = nil
    return try process.wait(limit)
  }

  func stop(timeout: Duration) {
    guard let process else { return }
    // After the second signal the daemon doesn't wait for its workers.
    for _ in 0..<2 {
      kill(process.pid, SIGTERM)
      let ended = try? pollDescriptor(
        process.pidfd.raw, for: POLLIN, until: Deadline(in: timeout))
      if ended == true { break }
    }
    kill(process.pid, SIGKILL)
    _ = try? process.wait(.seconds(60))
    self.process = nil
  }

  private func removeLeftovers() {
    for name in (try? listDirectory("\(state)/workers")) ?? [] where name.hasSuffix(".worker") {
      let fields = record(String(name.dropLast(7)))
      if let path = fields["cgroup"], let group = try? WorkerCgroup(path: path) {
        try? group.kill()
        try? group.remove(until: Deadline(in: .seconds(60)))
        rmdir(String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]))
      } else if let pid = fields["pid"].flatMap({ Int32($0) }),
        let start = fields["start"].flatMap({ UInt64($0) })
      {
        try? ProcessTree.killAll(root: ProcessIdentity(pid: pid, startTime: start), session: pid)
      }
    }
  }

  // MARK: its log and its files

  var logText: String { (try? readText(log)) ?? "" }

  func waitForLogText(_ text: String) throws {
    guard try eventually({ self.logText.contains(text) }) else {
      throw TestFailure("the daemon never said `\(text)`, but: \(logText)")
    }
  }

  /// Open descriptors of the daemon.
  func descriptorCount() throws -> Int { try listDirectory("/proc/\(pid)/fd").count }

  /// Names of zombies that the daemon hasn't waited for.
  func zombies() throws -> [String] {
    children(of: pid).compactMap { try? ProcessStat.read($0) }
      .filter(\.isEnded).map { "\($0.pid) (\($0.name))" }
  }

  // MARK: its verbs

  /// Runs a verb as from a shell.
  func verb(_ arguments: String...) throws -> Outcome { try enter(arguments) }

  /// Runs a verb that must succeed; its output.
  @discardableResult
  func done(_ arguments: String...) throws -> String {
    let outcome = try enter(arguments)
    guard outcome.code == 0 else {
      throw TestFailure("`\(arguments.joined(separator: " "))`: \(outcome)the daemon: \(logText)")
    }
    return outcome.output
  }

  func enter(_ arguments: [String]) throws -> Outcome {
    var command = Command.dormouse(arguments)
    // Right behind the verb: after `--` it would be the worker's.
    let index = ["pressure", "policy"].contains(arguments.first) ? 3 : 2
    command.arguments.insert(contentsOf: ["--socket", socket], at: index)
    command.directory = scratch.path
    return try command.run(in: scratch)
  }

  func json<Value: Decodable>(_ type: Value.Type, _ arguments: String...) throws -> Value {
    let outcome = try enter(arguments + ["--json"])
    guard outcome.code == 0 else { throw TestFailure("\(arguments): \(outcome)") }
    return try WireCodec.decode(type, from: Array(outcome.output.utf8))
  }

  /// Sends a request without a `dormouse` process in between, for frequent requests.
  func ask(_ verb: ControlRequest.Verb, _ worker: String? = nil) throws -> ControlResponse {
    var client = try ControlClient(connectingTo: socket, isNamed: true)
    do throws(ControlError) {
      return try client.perform(verb, worker: worker, timeout: .seconds(60))
    } catch {
      // If the check of its event loop aborted the daemon, the log says what took the time.
      guard (try? hasEnded()) == true else { throw error }
      throw TestFailure("\(error); the daemon has ended: \(logText)")
    }
  }

  func worker(_ name: String) throws -> WorkerReport {
    guard let report = try ask(.status, name).workers?.first else {
      throw TestFailure("no report of \(name)")
    }
    return report
  }

  /// The footprint that the daemon reports, in bytes, once it agrees with the kernel's to within
  /// 512 KB. The daemon answers from its last measurement, which can be older than what the worker
  /// has just done.
  func currentFootprint(_ name: String) throws -> Int64 {
    var reported: Int64 = 0
    var measured: Int64 = 0
    let agrees = try eventually {
      let report = try self.worker(name)
      guard let pid = report.pid, let truth = try Footprint.measure(pid) else { return false }
      (reported, measured) = (Int64(report.footprint), Int64(truth.footprint))
      return abs(reported - measured) <= 512 << 10
    }
    guard agrees else {
      throw TestFailure("\(name): the daemon reports \(reported) bytes, the kernel \(measured)")
    }
    return reported
  }

  func wait(_ name: String, toBe state: String, within limit: Duration = .seconds(60)) throws {
    var last: WorkerReport?
    let reached = try eventually(within: limit) {
      last = try self.worker(name)
      return last?.state == state
    }
    if !reached {
      let now =
        "\(last?.state ?? "?"), \(last?.reason.text ?? "?"), \(last?.hibernation?.text ?? "")"
      throw TestFailure("\(name) isn't \(state) but \(now); the daemon: \(logText)")
    }
  }
}

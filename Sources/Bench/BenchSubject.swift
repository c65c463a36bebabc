import Control
import Glibc
import Hibernation
import Linux
import Supervision

/// The program that is measured, one launch after another. Nothing of it is left at the end.
final class BenchSubject {
  let options: BenchOptions
  let interruptions: Interruptions
  let service: HibernationService
  private let directory: String
  private let root: Result<CgroupRoot, CgroupError>
  private(set) var process: WorkerProcess?
  let connection: HTTPConnection?

  static let name = "bench"
  /// The process whose working set is being learned, and the number of resumes so far.
  var learned: (process: ProcessIdentity, resumes: Int)?
  var imagePath: String { "\(directory)/\(Self.name).image" }
  private var logPath: String { "\(directory)/\(Self.name).log" }

  init(_ options: BenchOptions, directory: String, _ interruptions: Interruptions) {
    self.options = options
    self.directory = directory
    self.interruptions = interruptions
    service = HibernationService()
    root = Result { () throws(CgroupError) in
      try CgroupRoot.detect(name: "dormouse-bench-\(getpid())")
    }
    connection =
      if case .http(let address) = options.request { HTTPConnection(address, interruptions) } else {
        nil
      }
  }

  /// Creates a new cgroup for a launch.
  private func makeGroup() -> Result<WorkerCgroup, CgroupError> {
    root.flatMap { root in
      Result { () throws(CgroupError) in try WorkerCgroup.create(in: root, name: Self.name) }
    }
  }

  /// The reason why the program runs outside a cgroup.
  private(set) var cgroupRefusal: String?

  /// True if the program is frozen in its cgroup while it is hibernated.
  var usesFreezer: Bool { process?.cgroup != nil }

  var target: HibernationTarget {
    get throws {
      let process = try running
      return HibernationTarget(
        name: Self.name, root: process.identity, session: process.session, cgroup: process.cgroup,
        memories: process.memory.map { [process.identity.pid: $0] } ?? [:])
    }
  }

  var running: WorkerProcess {
    get throws {
      guard let process else { throw BenchError.failed("the program is not running") }
      return process
    }
  }

  // MARK: start and end

  /// Launches the program, and waits until it is ready and has answered. Returns the time in ns.
  func launch() throws -> Int64 {
    let group = makeGroup()
    if case .failure(let error) = group { cgroupRefusal = "\(error)" }
    let plan = LaunchPlan(
      name: Self.name, command: options.command, directory: options.directory,
      // With nil the program runs without a cgroup, and the report gives the reason.
      environment: options.environment, cgroup: try? group.get(), logPath: logPath)
    let deadline = Deadline(in: options.timeout)
    let start = Clocks.monotonic
    let process: WorkerProcess
    do throws(LaunchError) { process = try WorkerProcess.launch(plan) } catch {
      // An error here doesn't matter: the first error is the one to report.
      try? plan.cgroup?.remove(until: deadline)
      throw BenchError.program(escaped("\(error)"))
    }
    self.process = process
    if let refusal = process.cgroupRefusal { cgroupRefusal = "\(refusal)" }
    try waitUntilReady(process, deadline)
    try answerOnce(deadline)
    let took = Clocks.monotonic - start
    // The command may be a script that has executed the real program by now.
    try process.refreshMemory()
    return took
  }

  private func waitUntilReady(_ process: WorkerProcess, _ deadline: Deadline) throws {
    guard let rule = options.readiness else {
      if options.request == nil { try waitUntilIdle(process, deadline) }
      return
    }
    let readiness = Readiness(rule, worker: process)
    while try !readiness.check() { try waitForProgress(process, deadline) }
  }

  /// Waits until the program hasn't used the processor for 250 ms. A program without a sign of
  /// readiness shows no better sign.
  private func waitUntilIdle(_ process: WorkerProcess, _ deadline: Deadline) throws {
    var used: UInt64?
    while true {
      let now = try process.tree().processes.reduce(0) { $0 + $1.cpuTicks }
      if used == now { return }
      used = now
      try waitForProgress(process, deadline, pause: .milliseconds(250))
    }
  }

  private func answerOnce(_ deadline: Deadline) throws {
    guard let request = options.request else { return }
    while true {
      switch request {
      case .http:
        if let response = try connection?.attempt(until: deadline), response.isSuccess { return }
      case .command(let text):
        if try succeeds(text, until: deadline) { return }
      }
      try waitForProgress(
        try running, deadline,
        orElse: "`\(escaped(options.requestText ?? ""))` did not succeed")
    }
  }

  /// Pauses. Throws an error if the program has ended, or if the deadline has passed.
  private func waitForProgress(
    _ process: WorkerProcess, _ deadline: Deadline, pause: Duration = .milliseconds(1),
    orElse failure: String = "the program was not ready"
  ) throws {
    let pidfd = process.pidfd.raw
    if try interruptions.wait(for: [pidfd], until: Deadline(in: pause)) != nil {
      throw BenchError.program("the program ended before it was ready\(lastOutput)")
    }
    if deadline.hasPassed {
      let limit = durationText(options.timeout / .seconds(1))
      throw BenchError.program("\(failure) within \(limit)\(lastOutput)")
    }
  }

  /// Kills the program in any state, and waits until no process of it is left.
  func kill() {
    connection?.close()
    guard let process else { return }
    self.process = nil
    // All of this cleans up. If a step fails, there is nothing that can be done about it.
    try? process.killAll()
    // This must come before the reaping: a process that is still traced can't be reaped.
    try? service.wait { (hibernator) throws(HibernationError) in
      hibernator.forget(BenchSubject.name)
    }
    let deadline = Deadline(in: .seconds(10))
    // If the end can't be waited for, the process is left behind.
    _ = try? pollDescriptor(process.pidfd.raw, for: POLLIN, until: deadline)
    _ = try? process.reap()
    // If the processes can't be listed, there are none that could be waited for.
    while !deadline.hasPassed, (try? process.tree().isEmpty) == false {
      pauseThread(for: .milliseconds(1))
    }
    // A group with processes stays.
    try? process.plan.cgroup?.remove(until: deadline)
    discardFile(imagePath)
    discardFile("\(imagePath).partial")
  }

  func end() {
    kill()
    // A group with processes stays.
    try? root.get().remove()
  }

  /// The last line of the program's output, for error messages.
  var lastOutput: String {
    let text = (try? readText(logPath)) ?? ""
    guard let last = text.split(separator: "\n").last else { return "; it printed nothing" }
    return "; its last line was `\(escaped(String(last.prefix(200))))`"
  }
}

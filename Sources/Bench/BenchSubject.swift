import Control
import Glibc
import Hibernation
import Linux
import Supervision

/// The program under test, one launch after the other. Nothing of it is left at the end.
final class BenchSubject {
  let options: BenchOptions
  let interruptions: Interruptions
  let service: HibernationService
  private let directory: String
  private let root: Result<CgroupRoot, CgroupError>
  private(set) var process: WorkerProcess?
  let line: HTTPLine?

  static let name = "bench"
  /// The process whose working set is being learned, and after how many resumes.
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
    line =
      if case .http(let address) = options.request { HTTPLine(address, interruptions) } else {
        nil
      }
  }

  /// Makes a new cgroup for each launch.
  private func makeGroup() -> Result<WorkerCgroup, CgroupError> {
    root.flatMap { root in
      Result { () throws(CgroupError) in try WorkerCgroup.create(in: root, name: Self.name) }
    }
  }

  /// Why it runs outside a cgroup.
  private(set) var cgroupRefusal: String?

  /// It rests in its cgroup's freezer.
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

  /// Starts it, and waits until it is ready and has answered; the time that took, in ns.
  func launch() throws -> Int64 {
    let group = makeGroup()
    if case .failure(let error) = group { cgroupRefusal = "\(error)" }
    let plan = LaunchPlan(
      name: Self.name, command: options.command, directory: options.directory,
      // nil: without a cgroup; the report says why.
      environment: options.environment, cgroup: try? group.get(), logPath: logPath)
    let deadline = Deadline(in: options.patience)
    let start = Clocks.monotonic
    let process: WorkerProcess
    do throws(LaunchError) { process = try WorkerProcess.launch(plan) } catch {
      // The first error is the one to report.
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
    let rule: ReadinessRule? =
      switch options.readiness {
      case .tcp(let port): .tcp(port)
      case .line(let text): .logLine(text)
      case nil: nil
      }
    guard let rule else {
      if options.request == nil { try waitForRest(process, deadline) }
      return
    }
    let readiness = Readiness(rule, worker: process)
    while try !readiness.check() { try waitForProgress(process, deadline) }
  }

  /// Waits until it hasn't used the processor for a while. A program without a sign of readiness has no better
  /// one.
  private func waitForRest(_ process: WorkerProcess, _ deadline: Deadline) throws {
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
        if let response = try line?.attempt(until: deadline), response.isSuccess { return }
      case .command(let text):
        if try succeeds(text, until: deadline) { return }
      }
      try waitForProgress(
        try running, deadline,
        orElse: "`\(escaped(options.requestText ?? ""))` did not succeed")
    }
  }

  /// Pauses for a moment. Throws when it has ended, or the time is over.
  private func waitForProgress(
    _ process: WorkerProcess, _ deadline: Deadline, pause: Duration = .milliseconds(1),
    orElse what: String = "the program was not ready"
  ) throws {
    let pidfd = process.pidfd.raw
    if try interruptions.wait(for: [pidfd], until: Deadline(in: pause)) != nil {
      throw BenchError.program("the program ended before it was ready\(lastWords)")
    }
    if deadline.hasPassed {
      let limit = durationText(options.patience.inMilliseconds / 1000)
      throw BenchError.program("\(what) within \(limit)\(lastWords)")
    }
  }

  /// Kills it, whatever state it is in, and waits until nothing is left of it.
  func kill() {
    line?.close()
    guard let process else { return }
    self.process = nil
    // All of this cleans up. If a step fails, nothing can be done about what is left.
    try? process.killAll()
    // In this order: a process that is still traced can't be reaped.
    try? service.wait { (hibernator) throws(HibernationError) in
      hibernator.forget(BenchSubject.name)
    }
    let deadline = Deadline(in: .seconds(10))
    // A process whose end can't be waited for is left behind as well.
    _ = try? pollDescriptor(process.pidfd.raw, for: POLLIN, until: deadline)
    _ = try? process.reap()
    // A tree that can't be listed counts as empty.
    while !deadline.hasPassed, (try? process.tree().isEmpty) == false {
      pauseThread(for: .milliseconds(1))
    }
    // A group that isn't empty stays.
    try? process.plan.cgroup?.remove(until: deadline)
    discardFile(imagePath)
    discardFile("\(imagePath).partial")
  }

  func end() {
    kill()
    // A group that isn't empty stays.
    try? root.get().remove()
  }

  /// The end of its output, for error messages.
  var lastWords: String {
    let text = (try? readText(logPath)) ?? ""
    guard let last = text.split(separator: "\n").last else { return "; it printed nothing" }
    return "; its last line was `\(escaped(String(last.prefix(200))))`"
  }
}

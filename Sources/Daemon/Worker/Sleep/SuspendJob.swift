import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

/// A worker that has just fallen asleep, and what may wake it.
struct Asleep: Sendable {
  var sources: Result<any WakeInputs, SystemCallError>
  var times: [DueTime] = []
  /// The footprint; nil: it wasn't measured.
  var measurement: Measurement?
  /// The memory that stays in the image of a trim; nil: all of it is in the worker's processes.
  var missing: MissingBytes?
  /// Detects that the manager of an external worker wants it to run.
  var manager: SleepWatch?
  /// The signals of the first process that were blocked and pending before the stop, and still are.
  var blockedPending: UInt64 = 0
}

/// Suspends a worker, and finds its inputs, so that they can be watched while it sleeps. Runs on a
/// thread of `mechanics`.
struct SuspendJob: Sendable {
  var target: HibernationTarget
  var daemonSockets: Set<String>
  var unreadBaseline: UnreadInputBaseline
  /// Nothing but its inputs would ever wake the worker.
  let dependsOnInputs: Bool
  /// The worker's own timers can wake it.
  var wakesForTimers = false
  /// A worker without clients that has a shorter timer stays awake. nil: it may sleep.
  var staysAwakeBelow: Duration?
  /// The ports at which the daemon answers health checks while the worker sleeps.
  var answeredPorts: Set<UInt16> = []
  /// The worker is suspended because it was idle, and not because of the operator or the ladder.
  var mustBeIdle = false
  /// The jobs of the manager of an external worker, in whose cgroup the worker is.
  var jobs: ManagerJobs?
  var isExternal = false

  /// Freezes a worker with memory in the image of a trim, and returns that memory. nil: all of its
  /// memory is back, and it runs.
  var freezeTrimmed: (@Sendable () throws -> MissingBytes?)?
  /// Wakes the worker. Tests have a fake.
  var wake: @Sendable (HibernationTarget, _ isStopped: Bool) throws -> Void = { target, isStopped in
    target.restartInterruptedSyscalls()
    try target.wake(isStopped: isStopped)
  }

  static let timeout = Duration.seconds(5)
  /// The limit is short, because other workers wait for this thread.
  private static let divisibleTimeout = Duration.milliseconds(200)
  /// A timer whose length isn't known counts as short if it is due sooner than this.
  private static let shortWait = Duration.seconds(2)

  /// Stops the worker, and finds its inputs. If this throws, the worker runs, unless the error is
  /// `SuspensionRefusal.stillStopped`.
  func run() throws -> Asleep {
    // A stop while the freezer keeps a prefork master would outlast the next thaw.
    target.masters.release()
    let began = Clocks.monotonic
    try target.cgroup?.checkContains(target.root)
    let tree = try discover()
    let pending = blockedPending
    if let thread = try DivisibleCall.thread(
      in: tree, until: Deadline(in: Self.divisibleTimeout))
    {
      // If the worker's manager has frozen it, the call can't end, and that is the reason.
      try checkManagerIsAway()
      throw SuspensionRefusal.inTheMiddle(thread: thread)
    }
    if mustBeIdle, let process = FileLocks.waiter(in: tree) {
      throw SuspensionRefusal.awaitsLock(process: process)
    }
    let ignored = unreadBaseline.stillUnread(by: tree, daemonSockets: daemonSockets)
    target.waits.willRest(tree)
    let missing = try stop()
    do {
      var asleep = try inspectStopped(ignored, missing, since: began)
      asleep.blockedPending = pending & blockedPending
      return asleep
    } catch { throw wakeAgain(because: error) }
  }

  /// The blocked signals that are pending for the first process; 0 if they can't be read.
  private var blockedPending: UInt64 {
    // A process that can't be read may have ended.
    (try? ProcessStatus.read(target.root.pid))?.blockedPending ?? 0
  }

  /// Stops the worker. If this throws, the worker runs.
  ///
  /// - Returns: the memory that stays in the image of a trim; nil: none does.
  private func stop() throws -> MissingBytes? {
    if let missing = try freezeTrimmed?() { return missing }
    if let freezer = target.cgroup?.freezer {
      try freezer.freeze(until: Deadline(in: Self.timeout))
    } else {
      try checkManagerIsAway()
      _ = try ProcessTree.stopAll(
        root: target.root, session: target.session, cgroup: target.cgroup,
        until: Deadline(in: Self.timeout))
    }
    return nil
  }

  private func inspectStopped(
    _ ignored: UnreadInputBaseline, _ missing: MissingBytes?, since began: Int64
  ) throws -> Asleep {
    try waitUntilAtRest()
    let manager = isExternal ? SleepWatch(of: try discover(), in: target.cgroup) : nil
    try checkManagerRunsNothing()
    let tree = try discover()
    target.waits.didRest(tree)
    try target.masters.find(in: tree)
    if mustBeIdle { try checkIsIdle() }
    let sources = watch(ignored, since: began)
    // Timers may wake the worker, or it works only by its timers: nothing else gives it work.
    let times =
      wakesForTimers || sources.hasNoClients
      ? try DueTime.timers(of: discover()) + target.waits.dueTimes : []
    if mustBeIdle, sources.hasNoClients { try checkTimers(times, of: tree) }
    // A resource that is short now may be free in a moment, so the next attempt may succeed. If
    // Yama forbids this daemon to open the worker's sockets, its clients would wait for ever.
    guard let refusal = sources.refusal,
      dependsOnInputs || refusal.isShortage || !tree.pids.allSatisfy(Yama.current.permits)
    else {
      return Asleep(
        sources: sources, times: times, measurement: Self.measure(tree, missing), missing: missing,
        manager: manager)
    }
    throw SuspensionRefusal.unwatchable(refusal)
  }

  /// Measures the footprint, unless the worker is big: a wake would wait for the measurement. The
  /// engine asks for the footprint next, and a thread of its own would begin later by as long as
  /// this takes.
  private static func measure(_ tree: ProcessTree, _ missing: MissingBytes?) -> Measurement? {
    guard tree.pids.count <= fewProcesses,
      tree.pids.reduce(0, { $0 + residentMemory(of: $1).all }) <= smallMemory
    else { return nil }
    let measurement = Measurement.measure(tree.pids, missing)
    return measurement.refusal == nil ? measurement : nil
  }

  /// The maximum resident memory, in bytes, of a worker that is measured here. The measurement
  /// takes 0.4 ms for a Python program with 16 MB.
  private static let smallMemory: UInt64 = 96 << 20
  private static let fewProcesses = 8

  private func waitUntilAtRest() throws {
    if let thread = try discover().threadOnItsWay(until: Deadline(in: Self.timeout)) {
      throw SuspensionRefusal.stillMoving(thread: thread)
    }
  }

  private func checkIsIdle() throws {
    let tree = try discover()
    if let thread = tree.threadAtWork { throw SuspensionRefusal.atWork(thread: thread) }
    if let thread = tree.threadWithResult(until: Deadline(in: .seconds(1))) {
      throw SuspensionRefusal.atWork(thread: thread)
    }
    if let process = tree.processWithSignal { throw SuspensionRefusal.atWork(thread: process) }
    // The check by ptrace has moved the threads.
    try waitUntilAtRest()
  }

  /// Throws if a worker without clients works by timers so often that it is in use.
  private func checkTimers(_ times: [DueTime], of tree: ProcessTree) throws {
    guard let staysAwakeBelow else { return }
    let timer = times.first { time in
      // What is left of a long wait says little.
      time.whole.map { $0 < staysAwakeBelow } ?? (time.remaining < Self.shortWait)
    }
    if let timer { throw SuspensionRefusal.worksByTimer(timer.whole ?? timer.remaining) }
    if let thread = target.waits.unrecordedThread(in: tree) {
      throw SuspensionRefusal.atWork(thread: thread)
    }
  }

  /// Throws if the manager of an external worker uses its cgroup. A cgroup that the manager has
  /// frozen stays under its control. Processes that the manager runs in the cgroup must not be
  /// stopped, because the manager waits for them.
  private func checkManagerIsAway() throws {
    guard isExternal else { return }
    let pid = target.root.pid
    if ForeignFreeze.holds(pid) { throw SuspensionRefusal.frozenByManager(process: pid) }
    if target.cgroup != nil { try checkManagerRunsNothing() }
  }

  private func checkManagerRunsNothing() throws {
    if let job = try jobs?.running(in: discover()) { throw SuspensionRefusal.managerAtWork(job) }
  }

  /// Wakes the worker after a failed suspension.
  ///
  /// - Returns: `reason`; or `stillStopped` if the worker couldn't be woken.
  private func wakeAgain(because reason: any Error) -> any Error {
    do {
      try wake(target, target.cgroup?.freezer == nil)
      return reason
    } catch {
      return SuspensionRefusal.stillStopped(reason: "\(reason)", failure: "\(error)")
    }
  }

  /// The maximum age of an open request that keeps the worker awake. For an idle worker it is that
  /// of `TrafficMonitor`, because the request may have arrived since its last check. The time that
  /// this job has taken is added, because it doesn't make a request older.
  func limitOfRequests(after taken: Duration) -> Duration {
    (mustBeIdle ? TrafficMonitor.maxRequest : WakeSources.recently) + taken
  }

  private func watch(
    _ ignored: UnreadInputBaseline, since began: Int64
  ) -> Result<any WakeInputs, SystemCallError> {
    let limit = limitOfRequests(after: .nanoseconds(Clocks.monotonic - began))
    return Result { () throws(SystemCallError) in
      try WakeSources(
        of: discover(), daemonSockets: daemonSockets, ignored: ignored, answering: answeredPorts,
        openFor: limit)
    }
  }

  private func discover() throws(SystemCallError) -> ProcessTree {
    try ProcessTree.discover(root: target.root, session: target.session, cgroup: target.cgroup)
  }
}

extension SuspendJob {
  /// - Parameter snapshot: the worker while it is `suspending`.
  init(
    of worker: WorkerUnit, _ target: HibernationTarget, unreadBaseline: UnreadInputBaseline,
    as snapshot: WorkerSnapshot?
  ) {
    let policy = worker.configuration.policy
    self.init(
      target: target, daemonSockets: worker.daemonSockets, unreadBaseline: unreadBaseline,
      dependsOnInputs: policy.foreground.mode == .activity,
      wakesForTimers: policy.background.wakeForTimers != nil,
      // A worker that works more often than the policy wakes for timers is in use.
      staysAwakeBelow: snapshot?.mayStayAwake == true
        ? policy.background.wakeForTimers ?? .seconds(1 << 40) : nil,
      answeredPorts: worker.answeredPorts, mustBeIdle: snapshot?.isForIdleness == true,
      jobs: worker.external?.jobs, isExternal: worker.external != nil)
  }
}

/// Why a suspension didn't succeed. The worker runs, except after `stillStopped`, and the text is
/// the reason for people.
enum SuspensionRefusal: Error, CustomStringConvertible {
  case frozenByManager(process: Int32)
  case managerAtWork(ProcessStat)
  /// A stop would end the call with a partial result.
  case inTheMiddle(thread: Int32)
  /// It isn't known what the worker waits for, so nothing would wake it.
  case stillMoving(thread: Int32)
  /// The worker is still working, such as on a request that it has read. Nothing would wake it to
  /// finish that.
  case atWork(thread: Int32)
  /// Nothing would wake the worker when another program releases the lock.
  case awaitsLock(process: Int32)
  /// The worker is in use. Its memory leaves RAM by trims, if they are worth it.
  case worksByTimer(Duration)
  /// The worker's inputs can't be watched: it would miss requests while it sleeps. This is an error
  /// under `mode: activity`, or if descriptors are short.
  case unwatchable(SystemCallError)
  /// The worker was stopped, isn't to be suspended, and couldn't be woken.
  case stillStopped(reason: String, failure: String)

  var description: String {
    switch self {
    case .frozenByManager(let process):
      return "another program has frozen its cgroup (process \(process))"
    case .managerAtWork(let job):
      return "its manager started process \(job.pid) (\(job.name)) in its cgroup"
    case .inTheMiddle(let thread):
      return "its thread \(thread) is in the middle of a call that a stop would cut short (a "
        + "write, a receipt with MSG_WAITALL, a submission to io_uring)"
    case .stillMoving(let thread):
      let limit = SuspendJob.timeout.components.seconds
      return "its thread \(thread) did not come to rest within \(limit) s"
    case .atWork(let thread): return "not idle: its thread \(thread) is working"
    case .awaitsLock(let process):
      return "its process \(process) waits for a file lock that another program holds"
    case .worksByTimer(let timer):
      return "it has no clients and works by its own timer (\(timer.text)); its policy trims such "
        + "workers and doesn't suspend them"
    case .unwatchable(let reason):
      let what = "can't watch its sockets while it sleeps (\(reason))"
      if reason.isShortage { return what }
      return what + ", and nothing else would wake it; run `dormouse doctor` to see what is missing"
    case .stillStopped(let reason, let failure):
      return "\(reason); and it could not be woken: \(failure)"
    }
  }
}

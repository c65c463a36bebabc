import Hibernation
import Lifecycle
import Linux
import Supervision

/// A worker that has just fallen asleep, and what may wake it.
struct Asleep: Sendable {
  var sources: Result<any WakeInputs, SystemCallError>
  var times: [DueTime] = []
  /// `nil`: it isn't measured yet.
  var measurement: Measurement?
  /// For an external worker.
  var manager: SleepWatch?

  /// Nothing but the worker itself gives it work. False if that isn't known.
  var hasNoClients: Bool {
    if case .success(let sources) = sources { !sources.hasClients } else { false }
  }
}

/// The means to put a worker to sleep and watch its inputs meanwhile, for the mechanics' thread.
struct SuspendJob: Sendable {
  var identity: ProcessIdentity
  var session: Int32
  var cgroup: WorkerCgroup?
  var ownChannels: Set<String>
  var leftUnread: LeftUnread
  var waits: TimedWaits
  var masters: PreforkMasters
  /// Nothing but its inputs would ever wake it.
  var dependsOnInputs: Bool
  /// Its timers can wake it.
  var wakesForTimers = false
  /// Ports at which health checks are answered for it.
  var answeredPorts: Set<UInt16> = []
  /// It sleeps because it was idle, and not because of the operator or the ladder.
  var mustBeIdle = false
  /// For an external worker in its manager's cgroup.
  var jobs: ManagerJobs?
  var isExternal = false

  /// Lets it run. Tests provide their own.
  var wake: @Sendable (HibernationTarget, _ isStopped: Bool) throws -> Void = { target, isStopped in
    target.restartInterruptedSyscalls()
    try target.wake(isStopped: isStopped)
  }

  private static let patience = Duration.seconds(5)
  /// Other workers wait for this thread.
  private static let divisiblePatience = Duration.milliseconds(200)

  /// Stops it, and finds its inputs. When this throws, the worker runs; or the error is `StillStopped`.
  func run() throws -> Asleep {
    // A stop while the freezer holds it would outlast the next thaw.
    masters.release()
    let began = Clocks.monotonic
    let tree = try discover()
    if let thread = try DivisibleCall.thread(
      in: tree, until: Deadline(in: Self.divisiblePatience))
    {
      // If its manager has frozen it, the call can't end, and that is the reason.
      try checkManagerIsAway()
      throw InTheMiddle(thread: thread)
    }
    let ignored = leftUnread.stillIgnored(by: tree, ownChannels: ownChannels)
    waits.willRest(tree)
    try stop()
    do { return try lookAtStopped(ignored, since: began) } catch { throw wakeAgain(because: error) }
  }

  /// When this throws, the worker runs.
  private func stop() throws {
    if let freezer = cgroup?.freezer {
      try freezer.freeze(until: Deadline(in: Self.patience))
    } else {
      try checkManagerIsAway()
      _ = try ProcessTree.stopAll(
        root: identity, session: session, cgroup: cgroup, until: Deadline(in: Self.patience))
    }
  }

  private func lookAtStopped(_ ignored: LeftUnread, since began: Int64) throws -> Asleep {
    try waitForRest()
    let manager = isExternal ? SleepWatch(of: try discover(), in: cgroup) : nil
    if let job = try jobs?.running(in: discover()) { throw ManagerIsAtWork(job: job) }
    let tree = try discover()
    waits.rests(tree)
    try masters.look(at: tree)
    if mustBeIdle { try checkIsIdle() }
    let sources = watch(ignored, since: began)
    // What is short now may not be in a moment: the next attempt may succeed.
    guard let refusal = sources.refusal, dependsOnInputs || refusal.isShortage else {
      return Asleep(
        sources: sources,
        times: wantsTimes(sources) ? try DueTime.timers(of: discover()) + waits.dueTimes : [],
        measurement: Self.measure(tree), manager: manager)
    }
    throw Unwatchable(why: refusal)
  }

  /// Timers wake it, or it works by them: nothing else gives it work.
  private func wantsTimes(_ sources: Result<any WakeInputs, SystemCallError>) -> Bool {
    if wakesForTimers { return true }
    guard case .success(let sources) = sources else { return false }
    return !sources.hasClients
  }

  /// The engine asks for its footprint next, and a thread of its own would begin later by as long as this takes. Not of a
  /// big worker: a wake would wait for it.
  private static func measure(_ tree: ProcessTree) -> Measurement? {
    guard tree.pids.count <= fewProcesses,
      tree.pids.reduce(0, { $0 + residentMemory(of: $1).all }) <= smallMemory
    else { return nil }
    let found = Measurement.measure(tree.pids)
    return found.refusal == nil ? found : nil
  }

  /// Resident memory, bytes. For a python program with 16 MB it takes 0.4 ms.
  private static let smallMemory: UInt64 = 96 << 20
  private static let fewProcesses = 8

  private func waitForRest() throws {
    if let thread = try discover().threadOnItsWay(until: Deadline(in: Self.patience)) {
      throw NotAtRest(thread: thread)
    }
  }

  private func checkIsIdle() throws {
    let tree = try discover()
    if let thread = tree.threadAtWork { throw AtWork(thread: thread) }
    if let thread = tree.threadWithResult(until: Deadline(in: .seconds(1))) {
      throw AtWork(thread: thread)
    }
    if let process = tree.processWithSignal { throw AtWork(thread: process) }
    // The look by ptrace has moved the threads.
    try waitForRest()
  }

  /// A cgroup that its manager has frozen stays the manager's. The processes that the manager runs there must
  /// not be stopped, because the manager waits for them.
  private func checkManagerIsAway() throws {
    guard isExternal else { return }
    if ForeignFreeze.holds(identity.pid) { throw ManagerHasFrozenIt(process: identity.pid) }
    guard cgroup != nil else { return }
    if let job = try jobs?.running(in: discover()) { throw ManagerIsAtWork(job: job) }
  }

  private struct ManagerHasFrozenIt: Error, CustomStringConvertible {
    let process: Int32
    var description: String { "another program has frozen its cgroup (process \(process))" }
  }

  private struct ManagerIsAtWork: Error, CustomStringConvertible {
    let job: ProcessStat
    var description: String {
      "its manager started process \(job.pid) (\(job.name)) in its cgroup"
    }
  }

  /// - Returns: `reason`; or `StillStopped` where the worker couldn't be woken.
  private func wakeAgain(because reason: any Error) -> any Error {
    let target = HibernationTarget(
      name: "", root: identity, session: session, cgroup: cgroup, waits: waits, masters: masters)
    do {
      try wake(target, cgroup?.freezer == nil)
      return reason
    } catch { return StillStopped(reason: "\(reason)", failure: "\(error)") }
  }

  /// It was stopped, is not to be suspended, and could not be woken.
  struct StillStopped: Error, CustomStringConvertible {
    let reason: String
    let failure: String
    var description: String { "\(reason); and it could not be woken: \(failure)" }
  }

  /// How old an open request may be that keeps it awake: of an idle worker as `TrafficMonitor` has it, because the request
  /// may have come since the last look there. The time that this job itself has taken makes no request older.
  func limitOfRequests(after taken: Duration) -> Duration {
    (mustBeIdle ? TrafficMonitor.maxRequest : WakeSources.recently) + taken
  }

  private func watch(
    _ ignored: LeftUnread, since began: Int64
  ) -> Result<any WakeInputs, SystemCallError> {
    let limit = limitOfRequests(after: .nanoseconds(Clocks.monotonic - began))
    do throws(SystemCallError) {
      return .success(
        try WakeSources(
          of: discover(), ownChannels: ownChannels, ignored: ignored, answering: answeredPorts,
          openFor: limit))
    } catch {
      return .failure(error)
    }
  }

  private func discover() throws(SystemCallError) -> ProcessTree {
    try ProcessTree.discover(root: identity, session: session, cgroup: cgroup)
  }

  /// A stop would end the call with a part of its result.
  private struct InTheMiddle: Error, CustomStringConvertible {
    let thread: Int32
    var description: String {
      "its thread \(thread) is in the middle of a call that a stop would cut short (a write, a receipt "
        + "with MSG_WAITALL, a submission to io_uring)"
    }
  }

  /// What it waits for isn't known, so that nothing would wake it.
  private struct NotAtRest: Error, CustomStringConvertible {
    let thread: Int32
    var description: String {
      "its thread \(thread) did not come to rest within \(patience.components.seconds) s"
    }
  }

  /// Nothing would wake it to finish its work: a request that it has read, on a busy machine.
  private struct AtWork: Error, CustomStringConvertible {
    let thread: Int32
    var description: String { "not idle: its thread \(thread) is working" }
  }

  /// Under `mode: activity`, or because descriptors are short: it would miss its requests while it sleeps.
  private struct Unwatchable: Error, CustomStringConvertible {
    let why: SystemCallError
    var description: String {
      let what = "can't watch its sockets while it sleeps (\(why))"
      if why.isShortage { return what }
      return what + ", and nothing else would wake it; run `dormouse doctor` to see what is missing"
    }
  }
}

extension SuspendJob {
  /// - Parameter cause: of the transition to `suspending`.
  init(
    of worker: WorkerUnit, _ process: WorkerProcess, leftUnread: LeftUnread,
    because cause: Cause?
  ) {
    self.init(
      identity: process.identity, session: process.session, cgroup: process.cgroup,
      ownChannels: worker.ownChannels, leftUnread: leftUnread, waits: worker.waits,
      masters: worker.run.masters,
      dependsOnInputs: worker.configuration.policy.foreground.mode == .activity,
      wakesForTimers: worker.configuration.policy.background.wakeForTimers != nil,
      answeredPorts: worker.answeredPorts)
    isExternal = worker.external != nil
    jobs = worker.external?.jobs
    mustBeIdle = dependsOnInputs && cause?.meansIdle == true
    // A worker of an earlier daemon, whose sockets Yama doesn't let this daemon open: its clients would wait
    // for ever.
    if !Yama.current.permits(process.identity.pid) { dependsOnInputs = true }
  }
}

extension Cause {
  /// With `foreground.mode: activity`.
  fileprivate var meansIdle: Bool {
    switch self {
    case .graceOver, .quietAgain: true
    default: false
    }
  }
}

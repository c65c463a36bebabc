import Hibernation
import Lifecycle
import Linux
import Supervision

/// A worker that has just fallen asleep, and what may wake it.
struct Asleep: Sendable {
  var sources: Result<WakeSources, SystemCallError>
  var times: [DueTime] = []
  /// For an external worker.
  var manager: SleepWatch?
}

/// The means to put a worker to sleep and watch its inputs meanwhile, for the mechanics' thread.
struct SuspendJob: Sendable {
  var identity: ProcessIdentity
  var session: Int32
  var cgroup: WorkerCgroup?
  var ownChannels: Set<String>
  var leftUnread: LeftUnread
  var waits: TimedWaits
  /// Nothing but its inputs would ever wake it.
  var dependsOnInputs: Bool
  /// Its timers are of interest.
  var wakesForTimers = false
  /// At which health checks are answered for it.
  var answeredPorts: Set<UInt16> = []
  /// It sleeps because nothing happened, and not because a person or the ladder wants it to.
  var mustBeIdle = false
  /// For an external worker in its manager's cgroup.
  var jobs: ManagerJobs?
  var isExternal = false

  private static let patience = Duration.seconds(5)

  /// Freezes it; undone when this throws.
  func run() throws -> Asleep {
    let tree = try discover()
    let ignored = leftUnread.stillIgnored(by: tree, ownChannels: ownChannels)
    waits.willRest(tree)
    if let freezer = cgroup?.freezer {
      try freezer.freeze(until: Deadline(in: Self.patience))
    } else {
      try checkManagerIsAway()
      _ = try ProcessTree.stopAll(
        root: identity, session: session, cgroup: cgroup, until: Deadline(in: Self.patience))
    }
    let manager = isExternal ? SleepWatch(of: try discover(), in: cgroup) : nil
    if let job = try jobs?.running(in: discover()) {
      wakeAgain()
      throw ManagerIsAtWork(job: job)
    }
    waits.rests(try discover())
    if mustBeIdle, let thread = try discover().threadAtWork {
      wakeAgain()
      throw AtWork(thread: thread)
    }
    let sources = watch(ignored)
    guard dependsOnInputs, let refusal = sources.refusal else {
      return Asleep(
        sources: sources,
        times: wakesForTimers ? try DueTime.timers(of: discover()) + waits.dueTimes : [],
        manager: manager)
    }
    wakeAgain()
    throw Unwatchable(why: refusal)
  }

  /// A group that its manager has frozen stays the manager's; and what it runs there must not be
  /// stopped, because it waits for that.
  private func checkManagerIsAway() throws {
    guard isExternal, let cgroup else { return }
    if try cgroup.isFrozen { throw ManagerHasFrozenIt(path: cgroup.path) }
    if let job = try jobs?.running(in: discover()) { throw ManagerIsAtWork(job: job) }
  }

  private struct ManagerHasFrozenIt: Error, CustomStringConvertible {
    let path: String
    var description: String { "another program has frozen its cgroup \(path)" }
  }

  private struct ManagerIsAtWork: Error, CustomStringConvertible {
    let job: ProcessStat
    var description: String {
      "its manager runs process \(job.pid) (\(job.name)) in its cgroup"
    }
  }

  /// Whatever fails of this: the reason to give is another.
  private func wakeAgain() {
    let target = HibernationTarget(
      name: "", root: identity, session: session, cgroup: cgroup, waits: waits)
    target.restartInterruptedSyscalls()
    // One that has ended needs no SIGCONT.
    try? target.wake(isStopped: cgroup?.freezer == nil)
  }

  private func watch(_ ignored: LeftUnread) -> Result<WakeSources, SystemCallError> {
    do throws(SystemCallError) {
      return .success(
        try WakeSources(
          of: discover(), ownChannels: ownChannels, ignored: ignored, answering: answeredPorts))
    } catch {
      return .failure(error)
    }
  }

  private func discover() throws(SystemCallError) -> ProcessTree {
    try ProcessTree.discover(root: identity, session: session, cgroup: cgroup)
  }

  /// Nothing would wake it to finish what it was at: a request that it has read, on a busy machine.
  private struct AtWork: Error, CustomStringConvertible {
    let thread: Int32
    var description: String { "it is at work after all (its thread \(thread))" }
  }

  /// Under `mode: activity`: it would sleep through its calls.
  private struct Unwatchable: Error, CustomStringConvertible {
    let why: SystemCallError
    var description: String {
      "its sockets can't be watched while it sleeps (\(why)), and nothing else would wake it; "
        + "`dormouse doctor` names what is missing"
    }
  }
}

extension SuspendJob {
  /// - Parameter cause: of the transition to `suspending`.
  init(
    of runtime: WorkerUnit, _ process: WorkerProcess, leftUnread: LeftUnread,
    because cause: Cause?
  ) {
    self.init(
      identity: process.identity, session: process.session, cgroup: process.cgroup,
      ownChannels: runtime.ownChannels, leftUnread: leftUnread, waits: runtime.waits,
      dependsOnInputs: runtime.configuration.policy.foreground.mode == .activity,
      wakesForTimers: runtime.configuration.policy.background.wakeForTimers != nil,
      answeredPorts: runtime.answeredPorts)
    isExternal = runtime.external != nil
    jobs = runtime.external?.jobs
    mustBeIdle = dependsOnInputs && (cause == .graceOver || cause == .quietAgain)
    // A worker of an earlier daemon, whose sockets Yama keeps from us: its clients would wait for ever.
    if !Yama.current.permits(process.identity.pid) { dependsOnInputs = true }
  }
}

import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

// What sleeping workers are woken by, and what running ones are kept awake by.

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
  /// Nobody but its inputs would ever wake it.
  var dependsOnInputs: Bool
  /// Its timers are of interest.
  var wakesForTimers = false
  /// At which health checks are answered for it.
  var answeredPorts: Set<UInt16> = []
  /// It sleeps because nothing happened, and not because somebody wants it to.
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

extension Result<WakeSources, SystemCallError> {
  /// The first of what can't be watched.
  var refusal: SystemCallError? {
    switch self {
    case .success(let sources): sources.refusals.first
    case .failure(let error): error
    }
  }
}

extension WorkerRuntime {
  /// The sockets over which the worker talks with us.
  var ownChannels: Set<String> {
    run.conversation?.paths ?? []
  }
}

extension Daemon {
  /// The worker sleeps: from now on its inputs are watched here.
  func listen(for runtime: WorkerRuntime, at result: Result<WakeSources, SystemCallError>) {
    let id = runtime.id
    stopListening(for: runtime)
    if let refusal = result.refusal {
      log(.warning, "\(id): may sleep through a call: \(refusal)")
    }
    guard case .success(let sources) = result else { return }
    runtime.leftUnread = sources.leftUnread
    if sources.unwatched != runtime.unwatched, !sources.unwatched.isEmpty {
      log(
        .notice,
        "\(id): asleep, it isn't woken by \(sources.unwatched.joined(separator: " or ")): "
          + "nothing can watch that in its place")
    }
    runtime.unwatched = sources.unwatched
    do throws(SystemCallError) {
      let token = try loop.watch(sources.descriptor, .readable) { [unowned self] _ in
        guard let why = sources.take() else { return }
        wakeUp(runtime, why)
      }
      runtime.wakeSources = (sources, token)
      answer(for: runtime, at: sources.answered)
    } catch { log(.warning, "\(id): may sleep through a call: \(error)") }
  }

  /// After it has fallen asleep: what came too late for it to see.
  func wakeForWhatWaits(_ runtime: WorkerRuntime) {
    if let why = runtime.wakeSources?.sources.waiting { wakeUp(runtime, why) }
  }

  private func wakeUp(_ runtime: WorkerRuntime, _ why: String) {
    runtime.unheardCall = why
    runtime.wakeSources?.sources.admitOpened()
    hibernation.prioritize(runtime.id.name)
    driver.send(.wakeNeeded(runtime.id, why))
  }

  /// It couldn't be resumed: what had come for it still waits, and won't be reported again.
  func repeatCall(_ runtime: WorkerRuntime) {
    if let why = runtime.unheardCall { driver.send(.wakeNeeded(runtime.id, why)) }
  }

  /// It runs again, or never will.
  func stopListening(for runtime: WorkerRuntime) {
    runtime.unheardCall = nil
    runtime.managerWatch = nil
    cancelAlarm(of: runtime)
    stopAnswering(for: runtime)
    guard let (sources, token) = runtime.wakeSources else { return }
    loop.unwatch(sources.descriptor, token)
    sources.admitOpened()
    runtime.wakeSources = nil
  }
}

import Lifecycle
import Linux
import Policy
import Supervision

/// What one look at a running worker has found.
struct ActivityFindings: Sendable {
  /// The run that was looked at: its first process.
  var root: ProcessIdentity
  /// Microseconds of processor time, since its start.
  var cpu: UInt64
  /// Bytes.
  var anonymous: UInt64
  /// nil: traffic wasn't looked for.
  var hasTraffic: Bool?
  /// Where it came from, if that is known.
  var source: TrafficSource?
  /// The ports at which it listens; nil: traffic wasn't looked for.
  var ports: Set<UInt16>?
  /// Something else than itself can give it work; nil: traffic wasn't looked for.
  var hasClients: Bool?
  /// nil: the first look, or its counts can't be read.
  var written: Written?
  /// With which `written` was found, for the next look.
  var writes = WriteMeter()
  /// Of a wrapped program: what shows that it is at work, and the state that the next look compares
  /// with.
  var work: (sign: SignOfUse?, meter: WorkMeter)?
}

/// Looks at what running workers do. Tests provide their own.
protocol ActivityLooking: AnyObject {
  /// Calls back once on the loop, perhaps at once; nil: it isn't known.
  func look(
    at worker: WorkerUnit, _ process: WorkerProcess,
    then: @escaping (ActivityFindings?) -> Void)

  /// Drops the traffic that the kernel has recorded for the workers' connections since the last time.
  func collectLatches()
}

/// What running workers do: processor time, traffic. Their sockets and files are asked on another thread: a
/// socket that its program is writing to, and a file whose file system doesn't answer, may take any time.
/// A few threads look at all workers. Belongs to the loop's thread.
final class ActivityLooks: ActivityLooking {
  /// A look that takes longer is given up: what waits for it continues without the outcome.
  private static let patience = Duration.seconds(3)
  /// Many processes may be adopted on a machine with many others, in shadow mode for days: which processes belong to
  /// them is looked up this often, and not each second.
  private static let validity = Duration.seconds(5)

  private let jobs: LoopJobs
  private let driver: EngineDriver
  private let scanner: ProcessScanner
  private let line: LookLine
  /// See `TrafficMonitor`. One of the kernel's rings serves all workers. nil: the kernel has none.
  private let latches: InputLatches?
  /// Of a wrapped program.
  private var work: WorkMeter?

  /// - Parameter metersWork: what the only worker writes and starts counts as activity (`WorkMeter`).
  init(
    loop: EventLoop, jobs: LoopJobs, driver: EngineDriver, scanner: ProcessScanner,
    metersWork: Bool
  ) {
    self.jobs = jobs
    self.driver = driver
    self.scanner = scanner
    line = LookLine(loop)
    // Without it, only what is still open at a look is seen.
    latches = try? InputLatches(capacity: 512)
    work = metersWork ? WorkMeter() : nil
  }

  func collectLatches() { latches?.collect() }

  func look(
    at worker: WorkerUnit, _ process: WorkerProcess,
    then: @escaping (ActivityFindings?) -> Void
  ) {
    let look = worker.activityLook ?? makeLook(worker)
    worker.activityLook = look
    let isKnown =
      worker.external != nil && scanner.hasSeen(process.identity, within: Self.validity)
    if process.cgroup != nil || isKnown { return perform(look, of: worker, as: process, then) }
    // One look at all processes serves all workers that are sampled now.
    scanner.scanProcesses { [unowned self] _ in
      if worker.process === process {
        perform(look, of: worker, as: process, then)
      } else {
        then(nil)
      }
    }
  }

  private func perform(
    _ look: SharedLook<ActivityFindings?>, of worker: WorkerUnit, as process: WorkerProcess,
    _ then: @escaping (ActivityFindings?) -> Void
  ) {
    line.enter { done in
      look.ask { [unowned self, weak worker] found in
        done()
        let found = found ?? nil
        if let work = found?.work, found?.root == process.identity { self.work = work.meter }
        if let writes = found?.writes { worker?.sample.writes = writes }
        then(found)
      }
    }
  }

  private func makeLook(_ worker: WorkerUnit) -> SharedLook<ActivityFindings?> {
    SharedLook(jobs, about: "activity of \(worker.id)", within: Self.patience) {
      [unowned self, weak worker] () -> @Sendable () -> ActivityFindings? in
      guard let worker else { return { nil } }
      return job(worker)
    }
  }

  private func job(_ worker: WorkerUnit) -> @Sendable () -> ActivityFindings? {
    guard let process = worker.process else { return { nil } }
    let (identity, session, cgroup) = (process.identity, process.session, process.cgroup)
    let (scan, isExternal) = (scanner.lastScan, worker.external != nil)
    let traffic = beginTrafficLook(worker)
    let wantsTraffic = traffic != nil
    let isSwallowed = worker.isAsked
    let writes = worker.sample.writes
    let meter = worker.configuration.policy.foreground.mode == .activity ? work : nil
    return {
      let all: ProcessTree?
      if let cgroup {
        // One that has ended can't be looked at any more.
        all = try? ProcessTree.discover(root: identity, session: session, cgroup: cgroup)
      } else {
        all =
          isExternal
          ? scan?.currentTree(root: identity, session: session)
          : scan?.tree(root: identity, session: session)
      }
      guard let tree = all else { return nil }
      // In a cgroup of its own, this includes the time of children that have ended.
      let cpu =
        cgroup?.cpuMicroseconds()
        ?? tree.processes.reduce(0) { $0 + $1.cpuTicks } * 1_000_000 / ClockTicks.perSecond
      var found = ActivityFindings(
        root: identity, cpu: cpu,
        anonymous: tree.pids.reduce(0) { $0 + anonymousMemory(of: $1) })
      if wantsTraffic {
        let hasTraffic = traffic?.perform(at: tree) == true
        found.hasTraffic = hasTraffic && !isSwallowed
        if found.hasTraffic == true { found.source = traffic?.source }
        found.hasClients = traffic?.hasClients
        found.ports = traffic?.ports
      }
      found.writes = writes
      let written = found.writes.look(at: tree)
      if !isSwallowed { found.written = written }
      if var meter { found.work = (meter.look(at: tree), meter) }
      return found
    }
  }

  /// nil: incoming traffic doesn't matter now. A probe's own traffic doesn't count as activity: from its start
  /// on no traffic is looked at until `LivenessMonitor` or `ShedOverHTTP` has a look drop it.
  private func beginTrafficLook(_ worker: WorkerUnit) -> TrafficMonitor.Look? {
    let rules = worker.configuration.policy.foreground
    // In shadow mode a request counts: it would have woken a worker that would have been asleep.
    guard rules.mode == .activity || driver.state.imaginesSleep(of: worker.id) else { return nil }
    if worker.isAsked, !worker.isSettling { return nil }
    if worker.traffic == nil {
      // Without a descriptor for it, only processor time counts until the next look.
      worker.traffic = try? TrafficMonitor(
        latches: latches, ownChannels: worker.ownChannels, ignored: worker.healthPorts)
    }
    latches?.collect()
    return worker.traffic?.begin()
  }
}

import Lifecycle
import Linux
import Policy
import Supervision

/// The result of one sample of a running worker.
struct ActivityReading: Sendable {
  /// The first process of the run that was sampled.
  var root: ProcessIdentity
  /// The processor time since the run's start, in microseconds.
  var cpu: UInt64
  /// The anonymous memory, in bytes.
  var anonymous: UInt64
  /// Whether traffic has come; nil if it wasn't checked.
  var hasTraffic: Bool?
  /// Where the traffic came from; nil if that isn't known.
  var source: TrafficSource?
  /// The ports at which the worker listens; nil if traffic wasn't checked.
  var ports: Set<UInt16>?
  /// Whether anything but the worker itself can give it work; nil if traffic wasn't checked.
  var hasClients: Bool?
  /// What the worker has written; nil at the first sample, or if its counts can't be read.
  var written: Written?
  /// The state that `written` was measured with, for the next sample.
  var writes = WriteMeter()
  /// For a wrapped program, what shows that it is at work, and the state for the next sample to
  /// compare with.
  var work: (sign: SignOfUse?, meter: WorkMeter)?
}

/// Samples what running workers do. Tests provide their own.
protocol ActivitySource: AnyObject {
  /// Samples a worker and calls back once on the event loop, perhaps at once, with nil if the
  /// sample failed.
  func sample(
    _ worker: WorkerUnit, _ process: WorkerProcess,
    then: @escaping (ActivityReading?) -> Void)

  /// Drops the traffic that the kernel has recorded for the workers' connections since the last
  /// call.
  func collectLatches()
}

/// Samples what running workers do: processor time and traffic. Their sockets and files are read on
/// another thread, because a socket that its program is writing to, or a file whose file system
/// doesn't answer, may take any time. A few threads sample all workers. It belongs to the event
/// loop's thread.
final class KernelActivitySource: ActivitySource {
  /// The maximum time of a sample. The callers of a longer one continue without a result.
  private static let timeout = Duration.seconds(3)
  /// How long a scan of processes is valid for adopted processes. Many may be adopted on a machine
  /// with many others, in shadow mode for days. Which processes belong to them isn't looked up each
  /// second.
  private static let validity = Duration.seconds(5)

  private let jobs: LoopJobs
  private let driver: EngineDriver
  private let scanner: ProcessScanner
  private let limiter: ConcurrencyLimiter
  /// The kernel's record of traffic; nil if the kernel has none. One of the kernel's rings serves
  /// all workers; see `TrafficMonitor`.
  private let latches: InputLatches?
  /// The meter of a wrapped program.
  private var work: WorkMeter?

  /// - Parameter metersWork: whether the output and the child processes of the only worker count as
  ///   activity (`WorkMeter`).
  init(
    loop: EventLoop, jobs: LoopJobs, driver: EngineDriver, scanner: ProcessScanner,
    metersWork: Bool
  ) {
    self.jobs = jobs
    self.driver = driver
    self.scanner = scanner
    limiter = ConcurrencyLimiter(loop)
    // Without it, a sample sees only traffic on connections that are still open.
    latches = try? InputLatches(capacity: 512)
    work = metersWork ? WorkMeter() : nil
  }

  func collectLatches() { latches?.collect() }

  func sample(
    _ worker: WorkerUnit, _ process: WorkerProcess,
    then: @escaping (ActivityReading?) -> Void
  ) {
    let probe = worker.activityProbe ?? makeProbe(worker)
    worker.activityProbe = probe
    let isFresh =
      worker.external != nil && scanner.hasSeen(process.identity, within: Self.validity)
    if process.cgroup != nil || isFresh { return perform(probe, of: worker, as: process, then) }
    // One scan of all processes serves all workers that are sampled now.
    scanner.scanProcesses { [unowned self] _ in
      if worker.process === process {
        perform(probe, of: worker, as: process, then)
      } else {
        then(nil)
      }
    }
  }

  private func perform(
    _ probe: CoalescedProbe<ActivityReading?>, of worker: WorkerUnit, as process: WorkerProcess,
    _ then: @escaping (ActivityReading?) -> Void
  ) {
    limiter.enter { done in
      probe.ask { [unowned self, weak worker] reading in
        done()
        let reading = reading ?? nil
        if let work = reading?.work, reading?.root == process.identity { self.work = work.meter }
        if let writes = reading?.writes { worker?.sample.writes = writes }
        // An outcome that is late, or a sample that couldn't begin, may have seen a request.
        if reading?.hasTraffic != nil { worker?.traffic?.didReport() }
        then(reading)
      }
    }
  }

  private func makeProbe(_ worker: WorkerUnit) -> CoalescedProbe<ActivityReading?> {
    CoalescedProbe(jobs, about: "activity of \(worker.id)", within: Self.timeout) {
      [unowned self, weak worker] () -> @Sendable () -> ActivityReading? in
      guard let worker else { return { nil } }
      return job(worker)
    }
  }

  private func job(_ worker: WorkerUnit) -> @Sendable () -> ActivityReading? {
    guard let process = worker.process else { return { nil } }
    let (identity, session, cgroup) = (process.identity, process.session, process.cgroup)
    let (scan, isExternal) = (scanner.lastScan, worker.external != nil)
    let traffic = beginTrafficReading(worker)
    let wantsTraffic = traffic != nil
    let isSwallowed = worker.isAsked
    let writes = worker.sample.writes
    let meter = worker.configuration.policy.foreground.mode == .activity ? work : nil
    return {
      let all: ProcessTree?
      if let cgroup {
        // A worker that has ended can't be sampled any more.
        all = try? ProcessTree.discover(root: identity, session: session, cgroup: cgroup)
      } else {
        all =
          isExternal
          ? scan?.currentTree(root: identity, session: session)
          : scan?.tree(root: identity, session: session)
      }
      guard let tree = all else { return nil }
      // In a cgroup, this includes the time of children that have ended.
      let cpu =
        cgroup?.cpuMicroseconds()
        ?? tree.processes.reduce(0) { $0 + $1.cpuTicks } * 1_000_000 / ClockTicks.perSecond
      var reading = ActivityReading(
        root: identity, cpu: cpu,
        anonymous: tree.pids.reduce(0) { $0 + anonymousMemory(of: $1) })
      if wantsTraffic {
        let hasTraffic = traffic?.perform(at: tree) == true
        reading.hasTraffic = hasTraffic && !isSwallowed
        if reading.hasTraffic == true { reading.source = traffic?.source }
        reading.hasClients = traffic?.hasClients
        reading.ports = traffic?.ports
      }
      reading.writes = writes
      let written = reading.writes.sample(tree)
      if !isSwallowed { reading.written = written }
      if var meter { reading.work = (meter.sample(tree), meter) }
      return reading
    }
  }

  /// Begins to read a worker's traffic; nil if traffic doesn't matter now. A probe's own traffic
  /// doesn't count as activity: from the probe's start on no traffic is read until
  /// `QuietQuestion` consumes it with a sample.
  private func beginTrafficReading(_ worker: WorkerUnit) -> TrafficMonitor.Sample? {
    guard driver.countsTraffic(of: worker) else { return nil }
    if worker.isAsked, !worker.isDrainingTraffic { return nil }
    if worker.traffic == nil {
      // If no descriptor is free for it, only processor time counts until the next sample.
      worker.traffic = try? TrafficMonitor(
        latches: latches, daemonSockets: worker.daemonSockets, ignored: worker.healthPorts)
    }
    latches?.collect()
    return worker.traffic?.begin()
  }
}

extension EngineDriver {
  /// Whether a worker's traffic counts. In shadow mode a request counts: it would have woken a
  /// worker that would have been asleep.
  func countsTraffic(of worker: WorkerUnit) -> Bool {
    worker.configuration.policy.foreground.mode == .activity || state.imaginesSleep(of: worker.id)
  }
}

import Lifecycle
import Policy
import Supervision

/// What the last look at a running worker found.
struct ActivitySample {
  /// Bytes of anonymous memory at the last exact measurement.
  var anonymous: UInt64 = 0
  /// Processor time, in microseconds.
  var cpu: UInt64 = 0
  var at = Instant.zero
  /// What showed last that it is used; nil: another report than a look.
  var sign: SignOfUse? {
    didSet { source = nil }
  }
  /// Of `.traffic`: where it came from, if that is known.
  var source: TrafficSource?
  /// At which it listens, as the last look for traffic found them.
  var ports: Set<UInt16> = []
  var writes = WriteMeter()
  var writing = RegularWriting()
  /// The last full look found nothing that had changed since the one before.
  var isUnchanged = false
  /// Looks since then for which its processor time was enough.
  private var skipped = 0

  /// After this many looks that only read the processor time, a worker is examined in full.
  static let mostSkipped = 29

  /// Whether the worker's processor time shows that a full look would find nothing new: it hasn't run since the
  /// last one, which had found nothing new either. Counts as a look then.
  ///
  /// - Parameter cpu: microseconds, of all its processes; nil: not known.
  mutating func canSkip(cpu now: UInt64?, at instant: Instant) -> Bool {
    guard isUnchanged, now == cpu, skipped < Self.mostSkipped else {
      skipped = 0
      return false
    }
    skipped += 1
    at = instant
    return true
  }
}

/// Finds out what running workers do, reports to the engine what counts as activity, and has a worker measured
/// when its memory has moved. Belongs to the loop's thread.
final class ActivitySampler {
  /// Bytes of anonymous memory that must be added or freed before a worker is measured again.
  private static let minMove: UInt64 = 128 * 1024

  /// What a worker writes sooner after a change of its state answers the message of that.
  private static let afterMessage = Duration.seconds(3)

  private let clock: any Timers
  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let looks: any ActivityLooking
  private let meter: FootprintMeter

  init(
    clock: any Timers, driver: EngineDriver, workers: WorkerRegistry,
    looks: any ActivityLooking, meter: FootprintMeter
  ) {
    self.clock = clock
    self.driver = driver
    self.workers = workers
    self.looks = looks
    self.meter = meter
  }

  /// A sample of all workers begins.
  func beginSamples() { looks.collectLatches() }

  /// A running worker's footprint and activity. The exact footprint costs the kernel a walk through
  /// all page tables, so it is taken only when the cheap count of resident pages, or the
  /// size of its purgeable memory, has moved.
  ///
  /// - Returns: false if it hasn't run since the last look, and so can't have changed anything.
  func sample(_ worker: WorkerUnit) -> Bool {
    // The processes and the memory of a worker that hasn't run are unchanged. Only traffic over its sockets can
    // come without its running.
    if worker.sample.isUnchanged, !countsTraffic(of: worker),
      worker.sample.canSkip(cpu: worker.process?.cgroup?.cpuMicroseconds(), at: clock.now)
    {
      return false
    }
    lookAtActivity(of: worker) { [unowned self] found in
      if let found { apply(found, of: worker) }
    }
    return true
  }

  /// Calls back on the loop; nil: it isn't known, or the run has ended meanwhile.
  func lookAtActivity(of worker: WorkerUnit, then: @escaping (ActivityFindings?) -> Void) {
    guard let process = worker.process else { return then(nil) }
    let identity = process.identity
    looks.look(at: worker, process) { [workers] found in
      guard workers[worker.id] === worker, worker.process?.identity == identity,
        let found, found.root == identity
      else { return then(nil) }
      then(found)
    }
  }

  /// The same condition as for `ActivityLooks` to look at its sockets.
  private func countsTraffic(of worker: WorkerUnit) -> Bool {
    worker.configuration.policy.foreground.mode == .activity
      || driver.state.imaginesSleep(of: worker.id)
  }

  private func apply(_ found: ActivityFindings, of worker: WorkerUnit) {
    guard driver.state.state(of: worker.id)?.runs == true, !worker.isBusy else {
      worker.sample.isUnchanged = false
      return
    }
    let now = clock.now
    let last = worker.sample
    worker.sample.cpu = found.cpu
    worker.sample.at = now
    if last.at != .zero,
      let event = activity(worker, found, cpu: found.cpu &- last.cpu, in: now - last.at)
    {
      driver.send(event)
    }
    let moved =
      found.anonymous > last.anonymous
      ? found.anonymous - last.anonymous : last.anonymous - found.anonymous
    let offersMoved = worker.conversation?.offers.look() == true
    worker.sample.isUnchanged =
      last.at != .zero && found.cpu == last.cpu && moved < Self.minMove && !offersMoved
    if moved >= Self.minMove || offersMoved || last.at == .zero {
      // While the budget allows no look, the look stays due.
      guard worker.measuring.isDue(at: now) else { return }
      worker.sample.anonymous = found.anonymous
      meter.measureWhenDue(worker)
    }
  }

  /// - Parameter cpu: microseconds.
  private func activity(
    _ worker: WorkerUnit, _ found: ActivityFindings, cpu: UInt64, in span: Duration
  ) -> Event? {
    let id = worker.id
    let rules = worker.configuration.policy.foreground
    let work = rules.mode == .activity ? found.work?.sign : nil
    let isWriting = notesWriting(of: worker, found)
    if let ports = found.ports { worker.sample.ports = ports }
    if let sign = found.hasTraffic == true ? .traffic : work {
      worker.sample.sign = sign
      if sign == .traffic { worker.sample.source = found.source }
      return .activity(id)
    }
    guard rules.mode == .activity else { return nil }
    if isWriting {
      worker.sample.sign = .writes
      return .worked(id)
    }
    // Below zero: a process that had a share of it has ended.
    guard cpu < 1 << 62 else { return nil }
    let share = Double(cpu) * 1000 / Double(max(span.wholeNanoseconds, 1)) * 100
    guard share >= rules.cpuBelow else { return nil }
    worker.sample.sign = .time
    return .worked(id)
  }

  /// Whether it writes regularly by itself. What it writes because of a message of the daemon doesn't count: while it
  /// frees memory, or has just changed its state.
  private func notesWriting(of worker: WorkerUnit, _ found: ActivityFindings) -> Bool {
    guard let written = found.written, written.bytes > 0, worker.shed == nil,
      let since = driver.state.snapshot(of: worker.id)?.since,
      clock.now - since >= Self.afterMessage
    else { return false }
    return worker.sample.writing.note(
      written, hasClients: found.hasClients ?? true, at: clock.now)
  }
}

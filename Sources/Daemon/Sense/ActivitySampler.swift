import Lifecycle
import Policy
import Supervision

/// The results of the last sample of a running worker.
struct ActivitySample {
  /// The bytes of anonymous memory at the last exact measurement.
  var anonymous: UInt64 = 0
  /// The processor time, in microseconds.
  var cpu: UInt64 = 0
  var at = Instant.zero
  /// What showed the last use; nil if it wasn't a sample that showed it.
  var sign: SignOfUse? {
    didSet { source = nil }
  }
  /// Where the traffic came from, if the sign is `.traffic`; nil if that isn't known.
  var source: TrafficSource?
  /// The ports at which the worker listens, by the last check of traffic.
  var ports: Set<UInt16> = []
  var writes = WriteMeter()
  var writing = RegularWriting()
  /// Whether the last full sample found nothing that had changed since the one before.
  var isUnchanged = false
  /// The number of samples since then that needed only the processor time.
  private var skipped = 0

  /// The maximum number of successive samples that only read the processor time. The next sample is
  /// a full one.
  static let maxSkipped = 29

  /// Whether a full sample can be skipped. The worker hasn't run since the last one, which had
  /// found no change either, so a full sample would find none. The skipped sample is counted.
  ///
  /// - Parameter cpu: the processor time of all its processes, in microseconds; nil if it isn't
  ///   known.
  mutating func canSkip(cpu now: UInt64?, at instant: Instant) -> Bool {
    guard isUnchanged, now == cpu, skipped < Self.maxSkipped else {
      skipped = 0
      return false
    }
    skipped += 1
    at = instant
    return true
  }
}

/// Samples what running workers do, reports activity to the engine, and has a worker's footprint
/// measured when its memory has changed. It belongs to the event loop's thread.
struct ActivitySampler {
  /// The change of anonymous memory, in bytes, from which a worker is measured again.
  private static let minMove: UInt64 = 128 * 1024

  /// The time after a change of a worker's state in which its writes count as an answer to the
  /// message about it.
  private static let afterMessage = Duration.seconds(3)

  let clock: any Timers
  let driver: EngineDriver
  let workers: WorkerRegistry
  let source: any ActivitySource
  let meter: FootprintMeter

  /// Samples a running worker's footprint and activity. The exact footprint costs the kernel a walk
  /// through all page tables. So it is measured only if the cheap count of resident pages, or the
  /// size of the purgeable memory, has changed.
  ///
  /// - Returns: false if the worker hasn't run since the last sample, and so can't have changed
  ///   anything.
  func sample(_ worker: WorkerUnit) -> Bool {
    // The processes and the memory of a worker that hasn't run are unchanged. Only traffic on its
    // sockets can come without its running.
    if worker.sample.isUnchanged, !driver.countsTraffic(of: worker),
      worker.sample.canSkip(cpu: worker.process?.cgroup?.cpuMicroseconds(), at: clock.now)
    {
      return false
    }
    readActivity(of: worker) { reading in
      if let reading { apply(reading, of: worker) }
    }
    return true
  }

  /// Samples a worker and calls back on the event loop, with nil if the sample failed or the run
  /// has ended meanwhile.
  func readActivity(of worker: WorkerUnit, then: @escaping (ActivityReading?) -> Void) {
    guard let process = worker.process else { return then(nil) }
    let identity = process.identity
    source.sample(worker, process) { [workers] reading in
      guard workers[worker.id] === worker, worker.process?.identity == identity,
        let reading, reading.root == identity
      else { return then(nil) }
      then(reading)
    }
  }

  private func apply(_ reading: ActivityReading, of worker: WorkerUnit) {
    guard driver.state.state(of: worker.id)?.runs == true, !worker.isBusy else {
      worker.sample.isUnchanged = false
      return
    }
    let now = clock.now
    let last = worker.sample
    worker.sample.cpu = reading.cpu
    worker.sample.at = now
    if last.at != .zero,
      let event = activity(worker, reading, cpu: reading.cpu &- last.cpu, in: now - last.at)
    {
      driver.send(event)
    }
    let moved = max(reading.anonymous, last.anonymous) - min(reading.anonymous, last.anonymous)
    let offersMoved = worker.conversation?.offers.sample() == true
    worker.sample.isUnchanged =
      last.at != .zero && reading.cpu == last.cpu && moved < Self.minMove && !offersMoved
    if moved >= Self.minMove || offersMoved || last.at == .zero {
      // If the budget allows no measurement now, it stays due.
      guard worker.measuring.isDue(at: now) else { return }
      worker.sample.anonymous = reading.anonymous
      meter.measureWhenDue(worker)
    }
  }

  /// - Parameter cpu: microseconds.
  private func activity(
    _ worker: WorkerUnit, _ reading: ActivityReading, cpu: UInt64, in span: Duration
  ) -> Event? {
    let id = worker.id
    let rules = worker.configuration.policy.foreground
    let work = rules.mode == .activity ? reading.work?.sign : nil
    let isWriting = recordWriting(of: worker, reading)
    if let ports = reading.ports { worker.sample.ports = ports }
    if let sign = reading.hasTraffic == true ? .traffic : work {
      worker.sample.sign = sign
      if sign == .traffic { worker.sample.source = reading.source }
      return .activity(id)
    }
    guard rules.mode == .activity else { return nil }
    if isWriting {
      worker.sample.sign = .writes
      return .worked(id)
    }
    // The difference is below zero if a process that had a share of it has ended.
    guard cpu < 1 << 62 else { return nil }
    let share = Double(cpu) * 1000 / Double(max(span.wholeNanoseconds, 1)) * 100
    guard share >= rules.cpuBelow else { return nil }
    worker.sample.sign = .time
    return .worked(id)
  }

  /// Records what the worker has written, and returns whether it writes regularly by itself. Its
  /// writes because of a message of the daemon don't count: while it frees memory, or when it has
  /// just changed its state.
  private func recordWriting(of worker: WorkerUnit, _ reading: ActivityReading) -> Bool {
    guard let written = reading.written, written.bytes > 0, worker.shed == nil,
      let since = driver.state.snapshot(of: worker.id)?.since,
      clock.now - since >= Self.afterMessage
    else { return false }
    return worker.sample.writing.record(
      written, hasClients: reading.hasClients ?? true, at: clock.now)
  }
}

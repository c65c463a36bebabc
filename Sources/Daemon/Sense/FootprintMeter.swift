import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

// Footprints of workers come from the kernel. Adding up a process's mappings can take the kernel
// seconds, and waits while the process changes them. So it is done on threads of its own
// (`FootprintMeter`).

/// When a worker may be measured again, and which callers wait for that. There is one measurement
/// at a time. A caller that asks during a measurement gets the next one, because the event that it
/// wants to measure may have happened after the measurement began.
struct MeasuringState {
  typealias Completion = (Measurement?) -> Void

  private(set) var last: Measurement?
  /// The measurement from the worker's suspension, while it is still true: the worker hasn't run
  /// since, and no memory was moved.
  private(set) var fromSuspension: Measurement?
  private var isSuspensionReported = true
  private(set) var isUnderWay = false
  private var operations = OperationCount()
  private(set) var since = Instant.zero
  private var served: [Completion] = []
  private var waiting: [Completion] = []
  /// Regular measurements begin after this time.
  private var nextMeasurement = Instant.zero
  /// Incremented when memory is moved out or in, which makes the result of an earlier measurement
  /// invalid.
  private var epoch = 0
  private var measuredEpoch = 0
  /// Whether the log already says that the worker can't be measured exactly.
  private var isLoggedAsEstimate = false

  /// The share of one processor for the regular measurements of all workers together, in percent.
  static let budget: Int64 = 10
  static let maxPause = Duration.seconds(60)

  /// Whether a caller waits for a figure.
  var isAwaited: Bool { !served.isEmpty || !waiting.isEmpty }

  func isDue(at now: Instant) -> Bool { !isUnderWay && now >= nextMeasurement }

  /// Adds a caller.
  ///
  /// - Returns: whether a measurement must begin.
  mutating func ask(_ completion: @escaping Completion) -> Bool {
    waiting.append(completion)
    return !isUnderWay
  }

  /// Records that a measurement begins, and returns its number in the run.
  mutating func begin(at now: Instant) -> OperationCount.Number {
    isUnderWay = true
    fromSuspension = nil
    since = now
    measuredEpoch = epoch
    served = waiting
    waiting = []
    return operations.begin()
  }

  /// Whether the measurement with this number has no result yet.
  func isCurrent(_ number: OperationCount.Number) -> Bool {
    isUnderWay && operations.isLatest(number)
  }

  /// Records the end of a measurement.
  ///
  /// - Parameter workers: the number of workers that share the budget.
  /// - Returns: the callers that get a figure, the figure, and whether another measurement must
  ///   begin.
  mutating func finish(
    _ measurement: Measurement?, workers: Int, at now: Instant
  ) -> (completions: [Completion], Measurement?, more: Bool) {
    defer { served = [] }
    isUnderWay = false
    let counts = measuredEpoch == epoch
    if let measurement, counts {
      last = measurement
      let pause = measurement.took * Int(100 / Self.budget) * max(1, workers)
      nextMeasurement = now + min(pause, Self.maxPause)
    }
    return (served, counts ? measurement : nil, !waiting.isEmpty)
  }

  /// Returns the waiting callers of a measurement that takes too long. They continue without a
  /// figure. The measurement itself continues.
  mutating func giveUp() -> [Completion] {
    defer {
      served = []
      waiting = []
    }
    return served + waiting
  }

  /// Records that the worker's memory is moved to disk, or back.
  mutating func didMoveMemory() {
    epoch += 1
    fromSuspension = nil
  }

  /// Records a measurement from the worker's suspension.
  mutating func didSuspend(_ measurement: Measurement) {
    // The result of an earlier measurement is invalid: the worker still ran then.
    epoch += 1
    (last, fromSuspension, isSuspensionReported) = (measurement, measurement, false)
  }

  /// Whether nothing has changed since `didSuspend`. Then the figure is as good as a new one.
  mutating func confirm(at now: Instant) -> Bool {
    guard fromSuspension != nil else { return false }
    last?.at = now
    return true
  }

  /// The measurement of `didSuspend`, at the first call only. A second caller wants to know what
  /// has changed since.
  mutating func consumeFromSuspension() -> Measurement? {
    defer { isSuspensionReported = true }
    return isSuspensionReported ? nil : fromSuspension
  }

  /// Whether to log that the worker can't be measured exactly. It is true once in a run.
  mutating func shouldLogAsEstimate() -> Bool {
    defer { isLoggedAsEstimate = true }
    return !isLoggedAsEstimate
  }
}

/// Measures a worker's memory. Tests provide their own.
protocol FootprintSource {
  /// Measures and calls back once on the event loop, later, with nil if the worker's processes have
  /// ended meanwhile. A measurement that hangs doesn't call back.
  ///
  /// - Parameter missing: the memory of a worker that was resumed a moment ago, or trimmed, that
  ///   isn't back yet.
  func measure(
    _ process: WorkerProcess, of id: WorkerID, _ missing: MissingBytes?,
    then: @escaping (Measurement?) -> Void)
}

/// Measures workers on threads, each worker's measurements one after the other.
struct MeasuringThreads: FootprintSource {
  let services: Services

  func measure(
    _ process: WorkerProcess, of id: WorkerID, _ missing: MissingBytes?,
    then: @escaping (Measurement?) -> Void
  ) {
    let (root, session, cgroup) = (process.identity, process.session, process.cgroup)
    let done: @Sendable (Measurement?) -> Void = services.loopReturn.callback(then)
    services.measurers.submit(about: id.name) {
      // Without a cgroup this scans all processes of the machine. nil means that the worker has
      // ended meanwhile.
      let tree = try? ProcessTree.discover(root: root, session: session, cgroup: cgroup)
      done(tree.map { Measurement.measure($0.pids, missing) })
    }
  }
}

/// Measures the workers' memory and reports it to the engine. There is one measurement of each
/// worker at a time. All regular measurements together use a limited share of one processor
/// (`MeasuringState.budget`). It belongs to the event loop's thread.
struct FootprintMeter {
  /// The maximum time of a measurement. The callers of a longer one continue without a result.
  static let timeout = Duration.seconds(3)
  /// The time in which most workers that are resumed get their missing pages.
  static let fillTime = Duration.milliseconds(100)

  let clock: any Timers
  let driver: EngineDriver
  let workers: WorkerRegistry
  let source: any FootprintSource
  let log: (DaemonLog.Priority, String) -> Void

  /// Measures the footprint and reports it to the engine. A measurement takes a millisecond of
  /// processor time or more. So it waits while pages of the worker are still being restored: a
  /// client may be waiting for the worker.
  func measure(_ id: WorkerID) {
    guard let worker = workers[id] else { return }
    if let measurement = worker.measuring.consumeFromSuspension() {
      return report(measurement, of: worker)
    }
    // What is in the image of a trim doesn't return by itself.
    if let missing = worker.missing, missing.bytes > 0, !missing.isTrimmed {
      return measureSoon(id)
    }
    measure(worker) { measurement in
      if let measurement { pass(measurement, of: worker) }
    }
  }

  /// Reports the figure later. Input that has come while the worker fell asleep is then reported to
  /// the engine first, and wakes the worker. Otherwise the worker could be hibernated before.
  private func report(_ measurement: Measurement, of worker: WorkerUnit) {
    worker.sample.anonymous = measurement.anonymous
    let process = worker.process
    clock.after(.zero) {
      // The worker may have ended or run meanwhile.
      guard worker.process === process else { return }
      if worker.measuring.confirm(at: clock.now) {
        pass(measurement, of: worker)
      } else if worker.measuring.isUnderWay {
        measure(worker.id)
      }
    }
  }

  /// Passes the figure to the engine, and how much of it is in swap or in the image of a trim,
  /// unless that is nothing and was nothing.
  private func pass(_ measurement: Measurement, of worker: WorkerUnit) {
    let swapped = ByteCount(measurement.swapped)
    if swapped != .zero || driver.state.swapped(of: worker.id) != .zero {
      driver.send(.swapped(worker.id, swapped))
    }
    driver.send(.footprint(worker.id, measurement.footprint))
  }

  /// Measures the footprint when a worker that is being resumed has had time to answer.
  func measureSoon(_ id: WorkerID) {
    clock.after(Self.fillTime) { measure(id) }
  }

  /// Measures after a sample, only as often as the budget allows.
  func measureWhenDue(_ worker: WorkerUnit) {
    guard worker.measuring.isDue(at: clock.now) else { return }
    measure(worker.id)
  }

  /// Measures a worker and calls back on the event loop. The figure was measured after this call.
  /// It is nil if there is nothing to measure, if the measurement takes too long, or if the
  /// worker's memory was moved meanwhile.
  func measure(_ worker: WorkerUnit, then completion: @escaping (Measurement?) -> Void) {
    guard let process = worker.process else { return completion(nil) }
    giveUp(worker, process, after: Self.timeout)
    if worker.measuring.ask(completion) { begin(worker) }
  }

  private func begin(_ worker: WorkerUnit) {
    let id = worker.id
    let number = worker.measuring.begin(at: clock.now)
    guard let process = worker.process else { return finish(worker, nil) }
    source.measure(process, of: id, worker.missing) { [weak run = worker.run] measurement in
      // The result may belong to an earlier run, or to a worker that was removed since.
      guard let run, let worker = workers[id], worker.run === run, run.measuring.isCurrent(number)
      else { return }
      finish(worker, measurement)
    }
  }

  private func finish(_ worker: WorkerUnit, _ measurement: Measurement?) {
    if let refusal = measurement?.refusal, worker.measuring.shouldLogAsEstimate() {
      log(.warning, "\(worker.id): footprint is an estimate: \(refusal)")
    }
    let running = workers.values.count { driver.state.state(of: $0.id)?.runs == true }
    let (completions, result, more) = worker.measuring.finish(
      measurement, workers: running, at: clock.now)
    if let result { worker.sample.anonymous = result.anonymous }
    for completion in completions { completion(result) }
    if more, !worker.measuring.isUnderWay { begin(worker) }
  }

  private func giveUp(
    _ worker: WorkerUnit, _ process: WorkerProcess, after limit: Duration
  ) {
    clock.after(limit) {
      guard worker.process === process, worker.measuring.isUnderWay,
        worker.measuring.isAwaited
      else { return }
      let since = clock.now - worker.measuring.since
      // The measurement before this one ended in time. This one has its own time limit.
      if since < Self.timeout { return giveUp(worker, process, after: Self.timeout - since) }
      for completion in worker.measuring.giveUp() { completion(nil) }
    }
  }
}

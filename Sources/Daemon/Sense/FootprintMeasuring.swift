import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

// The footprints of workers, from the kernel. Adding up a process's mappings can take the kernel seconds, and
// waits while the process changes them: so it is done on threads of its own (`FootprintMeter`).

/// When a worker may be measured again, and which callers wait for that. One look at a time: a caller that asks
/// during a look gets the next one, because an event that it wants to measure may have happened since the look
/// began.
struct MeasuringState {
  typealias Completion = (Measurement?) -> Void

  private(set) var last: Measurement?
  /// Taken while the worker came to rest, and still true: it hasn't run since, and nothing was taken from it.
  private(set) var atRest: Measurement?
  private var isAtRestReported = true
  var isUnderWay: Bool { look != nil }
  /// The number of the look that is under way. A new run begins with a new value of this type.
  private(set) var look: UInt64?
  private(set) var since = Instant.zero
  private var served: [Completion] = []
  private var waiting: [Completion] = []
  /// Regular looks begin after this instant.
  private var nextLook = Instant.zero
  /// Incremented when memory is moved out or in: the outcome of an earlier look is invalid then.
  private var epoch = 0
  private var lookEpoch = 0
  /// The log already says that it can't be measured exactly.
  private var isLoggedAsRough = false

  /// Of one processor, for all workers' regular looks together, percent.
  static let budget: Int64 = 10
  static let maxPause = Duration.seconds(60)

  /// A caller waits for a figure.
  var isAwaited: Bool { !served.isEmpty || !waiting.isEmpty }

  func isDue(at now: Instant) -> Bool { !isUnderWay && now >= nextLook }

  /// True: a look must begin.
  mutating func ask(_ completion: @escaping Completion) -> Bool {
    waiting.append(completion)
    return !isUnderWay
  }

  /// - Parameter number: never used twice.
  mutating func begin(_ number: UInt64, at now: Instant) {
    look = number
    atRest = nil
    since = now
    lookEpoch = epoch
    served = waiting
    waiting = []
  }

  /// - Parameter workers: how many share the budget.
  /// - Returns: which callers get a figure, and which; and whether another look must begin.
  mutating func finish(
    _ measurement: Measurement?, workers: Int, at now: Instant
  ) -> (completions: [Completion], Measurement?, more: Bool) {
    defer { served = [] }
    look = nil
    let counts = lookEpoch == epoch
    if let measurement, counts {
      last = measurement
      let pause = measurement.took * Int(100 / Self.budget) * max(1, workers)
      nextLook = now + min(pause, Self.maxPause)
    }
    return (served, counts ? measurement : nil, !waiting.isEmpty)
  }

  /// The look has taken too long: waiting callers continue without a figure. The look itself continues.
  mutating func giveUp() -> [Completion] {
    defer {
      served = []
      waiting = []
    }
    return served + waiting
  }

  /// Its memory is moved to disk, or back.
  mutating func memoryMoves() {
    epoch += 1
    atRest = nil
  }

  /// It was measured while it came to rest.
  mutating func rests(_ measurement: Measurement) {
    // An earlier look has seen it running.
    epoch += 1
    (last, atRest, isAtRestReported) = (measurement, measurement, false)
  }

  /// Whether nothing has changed since `rests`; then the figure is as good as one that was taken now.
  mutating func isStillTrue(at now: Instant) -> Bool {
    guard atRest != nil else { return false }
    last?.at = now
    return true
  }

  /// The first time after `rests`: a second caller wants to know what has changed since.
  mutating func takeAtRest() -> Measurement? {
    defer { isAtRestReported = true }
    return isAtRestReported ? nil : atRest
  }

  /// True once in a run.
  mutating func mustLogAsRough() -> Bool {
    defer { isLoggedAsRough = true }
    return !isLoggedAsRough
  }
}

/// Measures a worker's memory. Tests provide their own.
protocol FootprintSource: AnyObject {
  /// Calls back once on the loop, later; nil: the worker's processes have ended meanwhile. A measurement that
  /// hangs doesn't call back.
  ///
  /// - Parameter missing: what is still to come of a worker that was resumed a moment ago.
  func measure(
    _ process: WorkerProcess, of id: WorkerID, _ missing: MissingBytes?,
    then: @escaping (Measurement?) -> Void)
}

/// Measures on threads of their own, each worker's measurements one after the other.
final class MeasuringThreads: FootprintSource {
  private let threads: JobPool
  private let loop: LoopReturn

  init(_ services: Services) {
    threads = services.measurers
    loop = services.loopReturn
  }

  func measure(
    _ process: WorkerProcess, of id: WorkerID, _ missing: MissingBytes?,
    then: @escaping (Measurement?) -> Void
  ) {
    let (root, session, cgroup) = (process.identity, process.session, process.cgroup)
    let done: @Sendable (Measurement?) -> Void = loop.callback(then)
    threads.submit(about: id.name) {
      // Without a cgroup this is a look at all processes of the machine. nil: it has ended meanwhile.
      let tree = try? ProcessTree.discover(root: root, session: session, cgroup: cgroup)
      done(tree.map { Measurement.measure($0.pids, missing) })
    }
  }
}

/// Has workers' memory measured, one look at each at a time, and reports it to the engine. All regular looks
/// together take a share of one processor at most (`MeasuringState.budget`). Belongs to the loop's thread.
final class FootprintMeter {
  /// A look that takes longer is given up: what waits for it continues without the outcome.
  static let patience = Duration.seconds(3)
  /// Most fills take less.
  static let fillTime = Duration.milliseconds(100)

  private let clock: any Timers
  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let source: any FootprintSource
  private let log: (DaemonLog.Priority, String) -> Void
  /// Numbers the looks.
  private var count: UInt64 = 0

  init(
    clock: any Timers, driver: EngineDriver, workers: WorkerRegistry,
    source: any FootprintSource, log: @escaping (DaemonLog.Priority, String) -> Void
  ) {
    self.clock = clock
    self.driver = driver
    self.workers = workers
    self.source = source
    self.log = log
  }

  /// Measures the footprint, and reports it to the engine. A look takes a millisecond of a processor or more, so it
  /// waits while pages of the worker are still put in place: a client may be waiting for the worker.
  func measure(_ id: WorkerID) {
    guard let worker = workers[id] else { return }
    if let found = worker.measuring.takeAtRest() { return report(found, of: worker) }
    if let missing = worker.missing, missing.bytes > 0 { return measureSoon(id) }
    measure(worker) { [unowned self] measurement in
      guard let measurement else { return }
      // A page that comes meanwhile is counted twice rather than not at all.
      let missing = ByteCount(Int64(clamping: worker.missing?.bytes ?? 0))
      driver.send(.footprint(id, measurement.footprint + missing))
    }
  }

  /// Later: an input that has come while the worker fell asleep is reported to the engine first, and wakes it. Otherwise it
  /// could be hibernated before.
  private func report(_ found: Measurement, of worker: WorkerUnit) {
    worker.sample.anonymous = found.anonymous
    let process = worker.process
    clock.after(.zero) { [unowned self] in
      // It may have ended, or run, meanwhile.
      guard worker.process === process else { return }
      if worker.measuring.isStillTrue(at: clock.now) {
        driver.send(.footprint(worker.id, found.footprint))
      } else if worker.measuring.isUnderWay {
        measure(worker.id)
      }
    }
  }

  /// The same, when a worker that is being resumed has had time to answer.
  func measureSoon(_ id: WorkerID) {
    clock.after(Self.fillTime) { [unowned self] in measure(id) }
  }

  /// At a sample: measures only as often as the budget allows.
  func measureWhenDue(_ worker: WorkerUnit) {
    guard worker.measuring.isDue(at: clock.now) else { return }
    measure(worker.id)
  }

  /// Calls back on the loop with a figure that was taken after this call; nil where there is nothing to
  /// measure, or it takes too long, or the worker's memory was moved meanwhile.
  func measure(_ worker: WorkerUnit, then completion: @escaping (Measurement?) -> Void) {
    guard let process = worker.process else { return completion(nil) }
    giveUp(worker, process, after: Self.patience)
    if worker.measuring.ask(completion) { begin(worker) }
  }

  private func begin(_ worker: WorkerUnit) {
    let id = worker.id
    count += 1
    let number = count
    worker.measuring.begin(number, at: clock.now)
    guard let process = worker.process else {
      return finish(worker, number: number, measurement: nil)
    }
    source.measure(process, of: id, worker.missing) { [unowned self] measurement in
      if let worker = workers[id] { finish(worker, number: number, measurement: measurement) }
    }
  }

  private func finish(_ worker: WorkerUnit, number: UInt64, measurement: Measurement?) {
    // It belongs to an earlier run, or to a worker that was removed since.
    guard worker.measuring.look == number else { return }
    if let refusal = measurement?.refusal, worker.measuring.mustLogAsRough() {
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
    clock.after(limit) { [unowned self] in
      guard worker.process === process, worker.measuring.isUnderWay,
        worker.measuring.isAwaited
      else { return }
      let since = clock.now - worker.measuring.since
      // The look before has ended in time, and this look has its own time limit.
      if since < Self.patience { return giveUp(worker, process, after: Self.patience - since) }
      for completion in worker.measuring.giveUp() { completion(nil) }
    }
  }
}

import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

/// Measures a worker's memory. Tests hand in their own.
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
      // Without a cgroup that is a look at all processes of the machine. nil: it has ended meanwhile.
      let tree = try? ProcessTree.discover(root: root, session: session, cgroup: cgroup)
      done(tree.map { Measurement.take($0.pids, missing) })
    }
  }
}

/// Has workers' memory measured, one look at each at a time, and reports it to the engine. All regular looks
/// together take a share of one processor at most (`MeasuringState.budget`). Belongs to the loop's thread.
final class FootprintMeter {
  /// A look that takes longer is given up: what waits for it goes on without.
  static let patience = Duration.seconds(3)

  private let clock: any Timers
  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let source: any FootprintSource
  private let log: (DaemonLog.Priority, String) -> Void
  /// Numbers the looks.
  private var count: UInt64 = 0

  init(
    _ clock: any Timers, _ driver: EngineDriver, _ workers: WorkerRegistry,
    _ source: any FootprintSource, log: @escaping (DaemonLog.Priority, String) -> Void
  ) {
    self.clock = clock
    self.driver = driver
    self.workers = workers
    self.source = source
    self.log = log
  }

  /// Measures it, and reports the figure to the engine.
  func measure(_ id: WorkerID) {
    guard let runtime = workers[id] else { return }
    measure(runtime) { [unowned self] measurement in
      guard let measurement else { return }
      // A page that comes meanwhile is counted twice rather than not at all.
      let missing = ByteCount(Int64(clamping: runtime.missing?.bytes ?? 0))
      driver.send(.footprint(id, measurement.footprint + missing))
    }
  }

  /// At a sample: only as often as the budget allows.
  func measureWhenDue(_ runtime: WorkerRuntime) {
    guard runtime.measuring.isDue(at: clock.now) else { return }
    measure(runtime.id)
  }

  /// Calls back on the loop with a figure that was taken after this call; nil where there is nothing to
  /// measure, or it takes too long, or the worker's memory was moved meanwhile.
  func measure(_ runtime: WorkerRuntime, then completion: @escaping (Measurement?) -> Void) {
    guard let process = runtime.process else { return completion(nil) }
    giveUp(runtime, process, after: Self.patience)
    if runtime.measuring.ask(completion) { begin(runtime) }
  }

  private func begin(_ runtime: WorkerRuntime) {
    let id = runtime.id
    count += 1
    let number = count
    runtime.measuring.begin(number, at: clock.now)
    guard let process = runtime.process else { return finish(runtime, number, nil) }
    source.measure(process, of: id, runtime.missing) { [unowned self] measurement in
      if let runtime = workers[id] { finish(runtime, number, measurement) }
    }
  }

  private func finish(_ runtime: WorkerRuntime, _ number: UInt64, _ measurement: Measurement?) {
    // Of an earlier run, or of a worker that was removed since.
    guard runtime.measuring.look == number else { return }
    if let refusal = measurement?.refusal, runtime.measuring.mustLogAsRough() {
      log(.warning, "\(runtime.id): measured roughly: \(refusal)")
    }
    let running = workers.values.count { driver.state.state(of: $0.id)?.runs == true }
    let (completions, result, more) = runtime.measuring.finish(
      measurement, workers: running, at: clock.now)
    if let result { runtime.sample.anonymous = result.anonymous }
    for completion in completions { completion(result) }
    if more, !runtime.measuring.isUnderWay { begin(runtime) }
  }

  private func giveUp(
    _ runtime: WorkerRuntime, _ process: WorkerProcess, after limit: Duration
  ) {
    clock.after(limit) { [unowned self] in
      guard runtime.process === process, runtime.measuring.isUnderWay,
        runtime.measuring.isAwaited
      else { return }
      let since = clock.now - runtime.measuring.since
      // The look before has ended in time, and this one has its own.
      if since < Self.patience { return giveUp(runtime, process, after: Self.patience - since) }
      for completion in runtime.measuring.giveUp() { completion(nil) }
    }
  }
}

import Linux
import Synchronization

/// Runs hibernators on threads of their own, for an event loop that mustn't wait. All functions may
/// be called on any thread, and return at once unless they say that they wait. Each operation calls
/// its completion on its own thread.
///
/// If workers are separated, each has a hibernator of its own from its first operation until
/// `forget`. It has a thread while there is something to do or it is traced (the same thread must
/// trace a worker all the time). So a resume never waits for the hibernation of another worker.
/// Hibernations are still performed one after the other; see `HibernationSlots`.
public final class HibernationService: Sendable {
  private let features: KernelFeatures
  private let lanes: Int?
  private let separatesWorkers: Bool
  private let slots = HibernationSlots()
  /// Why no worker can be restored lazily or trimmed to an image by this daemon; nil: it can.
  public var lazyObstacle: String? { features.lazyObstacle }
  private let threads: ThreadBudget
  /// The queue for work that isn't about a single worker's memory, such as dropping images from the
  /// page cache.
  let commonQueue = WorkQueue(name: "dormouse-aside")
  let shared = Mutex(Shared())

  struct Shared {
    /// The runners by worker's name; the name is empty if workers aren't separated.
    var runners: [String: HibernatorRunner] = [:]
    var standby: StandbyPagerConnection?
    var fillFailed: (@Sendable (String, HibernationError) -> Void)?
    var fillEnded: (@Sendable (String) -> Void)?
    var trimLost: (@Sendable (String, String) -> Void)?
  }

  /// - Parameters:
  ///   - lanes: the number of threads that compress and decompress, for each operation.
  ///   - separatesWorkers: true gives each worker a hibernator of its own. With false, `wait` sees
  ///     what all operations have left.
  ///   - keptThreads: if there are at most this many threads, those that aren't needed stay, too.
  public init(
    features: KernelFeatures = .detect(), lanes: Int? = nil, separatesWorkers: Bool = false,
    keptThreads: Int = 32
  ) {
    threads = ThreadBudget(minimum: keptThreads)
    self.features = features
    self.lanes = lanes
    self.separatesWorkers = separatesWorkers
    DescriptorReserve.fill()
  }

  /// Returns the runner of a worker. It is `nil` if there is none, and `makes` is false.
  private func runner(of name: String, makes: Bool = true, counts: Bool = true) -> HibernatorRunner?
  {
    shared.withLock { shared in
      let key = separatesWorkers ? name : ""
      if shared.runners[key] == nil, makes {
        let hibernator = Hibernator(features: features, lanes: lanes)
        hibernator.standby = shared.standby
        hibernator.fillFailed = shared.fillFailed
        hibernator.fillEnded = shared.fillEnded
        hibernator.trimLost = shared.trimLost
        shared.runners[key] = HibernatorRunner(hibernator, threads)
      }
      let runner = shared.runners[key]
      // The job is counted under the lock: a runner without pending jobs may be removed.
      if counts { runner?.pending.add(1, ordering: .acquiringAndReleasing) }
      return runner
    }
  }

  /// Submits a job. This is the only way to a runner's thread, and must follow a `runner(of:)` that
  /// counts.
  private func submit(
    to runner: HibernatorRunner, about name: String? = nil, isUrgent: Bool = false,
    _ job: @escaping @Sendable (HibernatorRunner) -> Void
  ) {
    runner.queue.submit(about: name, isUrgent: isUrgent) {
      job(runner)
      runner.updateTracing()
      runner.pending.subtract(1, ordering: .acquiringAndReleasing)
    }
  }

  func all() -> [HibernatorRunner] {
    shared.withLock { shared in
      for runner in shared.runners.values {
        runner.pending.add(1, ordering: .acquiringAndReleasing)
      }
      return Array(shared.runners.values)
    }
  }

  /// Submits a short job that needs nothing of what a thread traces. It doesn't start a thousand
  /// threads for that.
  func submit(
    toAll runners: [HibernatorRunner], _ job: @escaping @Sendable (HibernatorRunner) -> Void
  ) {
    for runner in runners {
      if runner.queue.hasThread {
        submit(to: runner, job)
      } else {
        commonQueue.submit {
          job(runner)
          runner.pending.subtract(1, ordering: .acquiringAndReleasing)
        }
      }
    }
  }

  /// Hibernates a worker.
  ///
  /// - Parameter first: called on the thread before the hibernation, when it is this worker's turn.
  public func hibernate(
    _ request: HibernationRequest, first: @escaping @Sendable () -> Void = {},
    then completion: @escaping @Sendable (Result<HibernationSummary, HibernationError>) -> Void
  ) {
    submit(about: request.target.name, isHibernation: true, first: first, completion) {
      (hibernator) throws(HibernationError) in try hibernator.hibernate(request)
    }
  }

  /// Resumes a worker, before jobs that aren't urgent.
  ///
  /// - Parameters:
  ///   - image: the image in the hibernation's summary.
  ///   - recorded: as for `Hibernator.resume`.
  public func resume(
    _ target: HibernationTarget, from image: RestingImage, keepsBase: Bool = false,
    recorded: @escaping @Sendable () -> String? = { nil },
    then completion: @escaping @Sendable (Result<ResumeSummary, HibernationError>) -> Void
  ) {
    submit(about: target.name, isUrgent: true, completion) {
      (hibernator) throws(HibernationError) in
      try DescriptorReserve.use { () throws(HibernationError) in
        try hibernator.resume(target, from: image, keepsBase: keepsBase, recorded: recorded)
      }
    }
  }

  /// Recovers a worker; see `Hibernator.recover`.
  public func recover(
    _ target: HibernationTarget, from path: String, expecting: ImageExpectation = .unknown(),
    keepsTrims: Bool = false, recorded: @escaping @Sendable () -> String? = { nil },
    then completion: @escaping @Sendable (Result<ResumeSummary, HibernationError>) -> Void
  ) {
    submit(about: target.name, isUrgent: true, completion) {
      (hibernator) throws(HibernationError) in
      try DescriptorReserve.use { () throws(HibernationError) in
        try hibernator.recover(
          target, from: path, expecting: expecting, keepsTrims: keepsTrims, recorded: recorded)
      }
    }
  }

  /// Sets the standby pager; see `StandbyPagerConnection`.
  public func set(_ standby: StandbyPagerConnection) {
    shared.withLock { $0.standby = standby }
    submit(toAll: all()) { $0.hibernator.withLock { $0.standby = standby } }
  }

  /// Sets the report of failed fills; see `Hibernator.fillFailed`.
  public func onFillFailure(_ report: @escaping @Sendable (String, HibernationError) -> Void) {
    shared.withLock { $0.fillFailed = report }
    submit(toAll: all()) { $0.hibernator.withLock { $0.fillFailed = report } }
  }

  /// Drops images from the page cache; see `Hibernator.dropFromCache`.
  public func dropFromCache(images: [String]) {
    if images.isEmpty { return }
    commonQueue.submit { Hibernator.dropFromCache(images: images) }
  }

  /// Performs the operation, if the worker has a hibernator, and waits for it and for that worker's
  /// earlier operations.
  func perform<Value: Sendable>(
    about name: String, makesHibernator: Bool = false,
    _ operation: @escaping @Sendable (Hibernator) throws(HibernationError) -> Value
  ) throws(HibernationError) -> Value? {
    guard let runner = runner(of: name, makes: makesHibernator) else { return nil }
    return try wait(on: runner, operation)
  }

  /// Reaps traced children; see `Hibernator.reapChildren`. Calls that wait behind a long operation
  /// are combined into one.
  public func reapChildren() {
    for runner in all() {
      // Without a thread nothing is traced there.
      guard runner.queue.hasThread,
        !runner.mustReap.exchange(true, ordering: .acquiringAndReleasing)
      else {
        runner.pending.subtract(1, ordering: .acquiringAndReleasing)
        continue
      }
      submit(to: runner) { runner in
        runner.mustReap.store(false, ordering: .releasing)
        runner.hibernator.withLock { $0.reapChildren() }
      }
    }
  }

  /// Gives priority to a worker that a client waits for: its pending operations, such as a
  /// hibernation, are performed before those for which no client waits.
  public func prioritize(_ name: String) {
    slots.prioritize(name)
    runner(of: name, makes: false, counts: false)?.queue.prioritize(name)
  }

  /// Drops bases; see `Hibernator.dropIdleBases`. Returns a function that waits for the end of
  /// that, at most 1 s. It may be called on any thread except the event loop's.
  @discardableResult
  public func dropIdleBases(outdated: Bool = false) -> @Sendable () -> Void {
    let done = Semaphore()
    let runners = all()
    submit(toAll: runners) { runner in
      runner.hibernator.withLock { $0.dropIdleBases(outdated: outdated) }
      done.signal()
    }
    return {
      let deadline = Deadline(in: .seconds(1))
      for _ in runners where !done.wait(until: deadline) { return }
    }
  }

  /// Drops a worker's base; see `Hibernator.dropIdleBase`.
  public func dropIdleBase(of name: String) {
    guard let runner = runner(of: name, makes: false) else { return }
    submit(to: runner, about: name) { $0.hibernator.withLock { $0.dropIdleBase(of: name) } }
  }

  /// Drops all state of a worker; see `Hibernator.forget`. Its thread ends with it.
  public func forget(_ name: String) {
    guard let runner = runner(of: name, makes: false) else { return }
    submit(to: runner, about: name) { [self] runner in
      runner.hibernator.withLock { $0.forget(name) }
      shared.withLock { shared in
        // The runner stays if jobs are pending (the worker has been started again), or if its
        // thread still traces a thread, which only it can detach.
        guard separatesWorkers, shared.runners[name] === runner,
          runner.pending.load(ordering: .acquiring) == 1, Stragglers.shared.release() == 0
        else { return }
        shared.runners[name] = nil
      }
    }
  }

  /// True if the worker has a thread of its own. The name is empty if workers aren't separated.
  func hasThread(of name: String) -> Bool {
    runner(of: name, makes: false, counts: false)?.queue.hasThread == true
  }

  /// Performs the operation and waits for it. It must be called only if workers aren't separated.
  public func wait<Value: Sendable>(
    _ operation: @escaping @Sendable (Hibernator) throws(HibernationError) -> Value
  ) throws(HibernationError) -> Value {
    precondition(!separatesWorkers, "each worker has a hibernator of its own")
    guard let runner = runner(of: "") else { preconditionFailure("it is made where there is none") }
    return try wait(on: runner, operation)
  }

  private func wait<Value: Sendable>(
    on runner: HibernatorRunner,
    _ operation: @escaping @Sendable (Hibernator) throws(HibernationError) -> Value
  ) throws(HibernationError) -> Value {
    defer { runner.pending.subtract(1, ordering: .acquiringAndReleasing) }
    return try runner.queue.perform { () -> Result<Value, HibernationError> in
      defer { runner.updateTracing() }
      return Self.perform(runner, operation)
    }.get()
  }

  func submit<Value: Sendable>(
    about name: String, isUrgent: Bool = false, isHibernation: Bool = false,
    first: @escaping @Sendable () -> Void = {},
    _ completion: @escaping @Sendable (Result<Value, HibernationError>) -> Void,
    _ operation: @escaping @Sendable (Hibernator) throws(HibernationError) -> Value
  ) {
    guard let runner = runner(of: name) else {
      preconditionFailure("it is made where there is none")
    }
    submit(to: runner, about: name, isUrgent: isUrgent) { [slots] runner in
      let turn = isHibernation ? slots.acquire(name) : nil
      first()
      let result = TraceSession.$frozenCall.withValue(TraceSession.FrozenCall { turn?.end() }) {
        Self.perform(runner, operation)
      }
      turn?.end()
      completion(result)
    }
  }

  private static func perform<Value: Sendable>(
    _ runner: HibernatorRunner, _ operation: (Hibernator) throws(HibernationError) -> Value
  ) -> Result<Value, HibernationError> {
    runner.hibernator.withLock { hibernator in
      do throws(HibernationError) { return .success(try operation(hibernator)) } catch {
        return .failure(error)
      }
    }
  }
}

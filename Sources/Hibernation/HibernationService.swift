import Linux
import Synchronization

/// The hibernator on its own thread, for an event loop that mustn't wait. Operations are performed
/// one after the other, resumes before all others, and each calls its completion on that thread.
public final class HibernationService: Sendable {
  /// What its thread couldn't detach is released as soon as it stops, between the operations.
  private let queue = WorkQueue(name: "dormouse-trace") {
    Stragglers.shared.release() == 0 ? nil : .milliseconds(5)
  }
  /// Locked only on the queue's thread; the lock is how the compiler knows.
  private let hibernator: Mutex<Hibernator>
  /// A `buryTheDead` is queued.
  private let mustBury = Atomic(false)

  public init(features: KernelFeatures = .detect(), lanes: Int? = nil) {
    hibernator = Mutex(Hibernator(features: features, lanes: lanes))
  }

  public func hibernate(
    _ target: HibernationTarget, to path: String, level: Int32, lazyReady: Bool = false,
    overlay: Bool = false, sealed: Bool = false, dropsFilePages: Bool = false,
    then completion: @escaping @Sendable (Result<HibernationSummary, HibernationError>) -> Void
  ) {
    submit(about: target.name, completion) { (hibernator) throws(HibernationError) in
      try hibernator.hibernate(
        target, to: path, level: level, lazyReady: lazyReady, overlay: overlay, sealed: sealed,
        dropsFilePages: dropsFilePages)
    }
  }

  /// Laid out for the resume that the worker's policy wants.
  public func hibernate(
    _ target: HibernationTarget, to path: String, level: Int32, resume: ResumePreference,
    overlay: Bool, sealed: Bool, dropsFilePages: Bool, storage: ImageStorage,
    then completion: @escaping @Sendable (Result<HibernationSummary, HibernationError>) -> Void
  ) {
    submit(about: target.name, completion) { (hibernator) throws(HibernationError) in
      try hibernator.hibernate(
        target, to: path, level: level, resume: resume, overlay: overlay, sealed: sealed,
        dropsFilePages: dropsFilePages, storage: storage)
    }
  }

  public func resume(
    _ target: HibernationTarget, from path: String, gear: ResumeGear = .eager,
    keepsBase: Bool = false,
    then completion: @escaping @Sendable (Result<ResumeSummary, HibernationError>) -> Void
  ) {
    submit(about: target.name, isUrgent: true, completion) {
      (hibernator) throws(HibernationError) in
      try hibernator.resume(target, from: path, gear: gear, keepsBase: keepsBase)
    }
  }

  public func recover(
    _ target: HibernationTarget, from path: String, expecting: ImageExpectation = .unknown,
    then completion: @escaping @Sendable (Result<ResumeSummary, HibernationError>) -> Void
  ) {
    submit(about: target.name, isUrgent: true, completion) {
      (hibernator) throws(HibernationError) in
      try hibernator.recover(target, from: path, expecting: expecting)
    }
  }

  func submit(_ body: @escaping @Sendable (Hibernator) -> Void) {
    queue.submit { self.hibernator.withLock { body($0) } }
  }

  /// See `Standby`.
  public func set(_ standby: Standby) {
    queue.perform { self.hibernator.withLock { $0.standby = standby } }
  }

  /// See `Hibernator.streamFailed`.
  public func onStreamFailure(_ report: @escaping @Sendable (String, HibernationError) -> Void) {
    queue.perform { self.hibernator.withLock { $0.streamFailed = report } }
  }

  /// See `Hibernator.streamEnded`.
  public func onStreamEnd(_ report: @escaping @Sendable (String) -> Void) {
    queue.perform { self.hibernator.withLock { $0.streamEnded = report } }
  }

  /// See `Hibernator.dropFromCache`.
  public func dropFromCache(images: [String]) {
    if images.isEmpty { return }
    queue.submit { Hibernator.dropFromCache(images: images) }
  }

  /// See `Hibernator.settle`. Waits; not for the event loop.
  public func settle(_ name: String) throws(HibernationError) {
    try wait { (hibernator) throws(HibernationError) in try hibernator.settle(name) }
  }

  /// See `Hibernator.buryTheDead`. However often it is called behind a long operation, one look is
  /// enough.
  public func buryTheDead() {
    guard !mustBury.exchange(true, ordering: .acquiringAndReleasing) else { return }
    queue.submit {
      self.mustBury.store(false, ordering: .releasing)
      self.hibernator.withLock { $0.buryTheDead() }
    }
  }

  /// Somebody waits for that worker: what is still to be done with it, its hibernation for one, is
  /// done before all that nobody waits for.
  public func hasten(_ name: String) { queue.hasten(name) }

  /// See `Hibernator.dropIdleBases`.
  public func dropIdleBases(outdated: Bool = false) {
    queue.submit { self.hibernator.withLock { $0.dropIdleBases(outdated: outdated) } }
  }

  /// See `Hibernator.dropIdleBase`.
  public func dropIdleBase(of name: String) {
    queue.submit(about: name) { self.hibernator.withLock { $0.dropIdleBase(of: name) } }
  }

  /// See `Hibernator.forget`.
  public func forget(_ name: String) {
    queue.submit(about: name) { self.hibernator.withLock { $0.forget(name) } }
  }

  /// Performs the operation and waits for it.
  public func wait<Value: Sendable>(
    _ operation: @escaping @Sendable (Hibernator) throws(HibernationError) -> Value
  ) throws(HibernationError) -> Value {
    try queue.perform { () -> Result<Value, HibernationError> in
      self.perform(operation)
    }.get()
  }

  private func submit<Value: Sendable>(
    about name: String, isUrgent: Bool = false,
    _ completion: @escaping @Sendable (Result<Value, HibernationError>) -> Void,
    _ operation: @escaping @Sendable (Hibernator) throws(HibernationError) -> Value
  ) {
    queue.submit(about: name, isUrgent: isUrgent) { completion(self.perform(operation)) }
  }

  private func perform<Value: Sendable>(
    _ operation: (Hibernator) throws(HibernationError) -> Value
  ) -> Result<Value, HibernationError> {
    hibernator.withLock { hibernator in
      do throws(HibernationError) { return .success(try operation(hibernator)) } catch {
        return .failure(error)
      }
    }
  }
}

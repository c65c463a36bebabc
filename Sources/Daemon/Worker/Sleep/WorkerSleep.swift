import Control
import Hibernation
import Lifecycle
import Policy
import Supervision

/// Suspends, hibernates and resumes one run of a worker. It begins one operation after the other,
/// reports each outcome to the engine once, and records where the worker's memory is. Belongs to
/// the loop's thread. Each run has its own instance, which gets no outcomes of an earlier run.
final class WorkerSleep {
  let id: WorkerID
  private(set) weak var worker: WorkerUnit?
  let watch: WakeWatch
  let sleeps: WorkerSleeps

  private(set) var resumeMethod = ResumeMethod.thaw(mayBeStopped: false)
  /// An operation waits for its outcome from another thread. The worker's exit is handled after it.
  private(set) var isBusy = false
  /// True while an operation runs. The process must not be reaped then: waitid would consume a stop
  /// that the tracing thread waits for.
  var isActing: Bool { isBusy && isUnderWay }
  var current: OperationFlag?
  /// How the hibernated worker will be resumed, and why; nil: it hasn't been hibernated.
  private(set) var restoreMode: CodedText?
  /// The memory that a lazy restore hasn't restored yet, or that is in the image of a trim; nil:
  /// none is missing.
  var missing: MissingBytes?
  /// The reason for which a trim was lost before its outcome came; nil: none was.
  var earlyLoss: String?
  private var operations = OperationCount()
  private(set) var isOver = false

  private static let unverified = "its memory can't be verified"

  init(_ worker: WorkerUnit, _ sleeps: WorkerSleeps) {
    id = worker.id
    self.worker = worker
    self.sleeps = sleeps
    watch = WakeWatch(of: worker, sleeps)
  }

  /// Ends this object with the run: no outcome counts any more.
  func end() { isOver = true }

  var isMemoryUnverified: Bool { if case .unverified = resumeMethod { true } else { false } }
  private var isUnderWay: Bool { current?.isRunning == true }
  private var hasEnded: Bool { worker?.hasExited ?? true }
  /// The worker has a process that hasn't ended.
  var mayBegin: Bool { worker?.process != nil && !hasEnded }

  /// Kills the worker. Even if that fails, the worker never runs again.
  func killUnverified() {
    resumeMethod = .unverified
    sleeps.kill(id)
  }

  // MARK: directives

  func suspend() {
    guard mayBegin else { return }
    if isMemoryUnverified { return driver.send(.suspendFailed(id, Self.unverified)) }
    // The swap may hang in a trim that the engine doesn't wait for any more.
    if isActing { return driver.send(.suspendFailed(id, Self.stillMoved)) }
    let number = operations.begin()
    // First the daemon's own requests to the worker end, and then `willSuspend` is sent to it.
    worker?.afterQuestions(driver) { [weak self] in
      self?.worker?.afterNotification { [weak self] in
        // An inspection may have ended the wait.
        guard let self, !isOver, mayBegin, operations.isLatest(number) else { return }
        resumeMethod = .thaw(mayBeStopped: false)
        begin({ $0.stop(then: $1) }, then: { $0.suspensionEnded($1) })
      }
    }
  }

  func hibernate() {
    guard mayBegin else { return }
    if isMemoryUnverified {
      return driver.send(.hibernateFailed(id, Self.unverified, permanent: true))
    }
    resumeMethod = resumeMethod.afterHibernationAttempt(isTrimmed: missing != nil)
    begin({ $0.evict(then: $1) }, then: { $0.hibernationEnded($1) })
  }

  func resume() {
    guard mayBegin else { return }
    let started = timers.awake
    switch resumeMethod {
    case .unverified:
      driver.send(.resumeFailed(id, Self.unverified, intact: false))
    case .recover(let image):
      let expected = image?.resting.expectation ?? .unknown()
      begin({ $0.recover(expecting: expected, then: $1) }) {
        $0.resumeEnded($1.result, started)
      }
    case .image(let image):
      begin({ $0.restore(from: image, then: $1) }, then: { $0.resumeEnded($1, started) })
    case .thaw(let mayBeStopped):
      begin({ $0.thaw(isStopped: mayBeStopped, then: $1) }, then: { $0.thawEnded($1, started) })
    }
  }

  /// Determines the worker's real state, because the engine has had no outcome for too long. If it
  /// isn't clear that the worker sleeps, a recovery verifies its memory and lets it run.
  func inspect() {
    // The worker's end has begun, and completes all operations.
    if hasEnded { return operationHasEnded() }
    guard mayBegin, !isBusy || !isUnderWay else { return driver.send(.found(id, .underWay)) }
    log(.warning, "an operation had no outcome: inspecting its state")
    // A suspension that still waits for the worker's reply doesn't begin any more.
    begin({ $0.inspectMemory(then: $1) }, then: { $0.didInspect($1) })
  }

  // MARK: a worker of an earlier daemon

  /// Adopts a worker that sleeps as its record says, and that continues to sleep.
  func adopt(asleepWith image: ImageOnDisk?) { resumeMethod = .recover(image) }

  // MARK: outcomes

  /// Begins an operation. Its outcome counts once, and not after another operation has begun.
  func begin<Outcome>(
    _ operation: (WorkerSleep, @escaping (Outcome) -> Void) -> Void,
    then: @escaping (WorkerSleep, Outcome) -> Void
  ) {
    isBusy = true
    let number = operations.begin()
    operation(self) { [weak self] outcome in
      guard let self, !isOver, isBusy, operations.isLatest(number) else { return }
      isBusy = false
      then(self, outcome)
      if !isOver { operationHasEnded() }
    }
  }

  /// Continues the end of the worker, which waited for the operation.
  func operationHasEnded() {
    if let worker, worker.hasExited { worker.ending?.rootDidEnd() }
  }

  /// Ends an operation whose outcome was lost.
  ///
  /// - Returns: false if its outcome has come, or can still come.
  func abandon(_ operation: OperationFlag) -> Bool {
    guard !isOver, isBusy, current === operation, !isUnderWay else { return false }
    isBusy = false
    return true
  }

  private func suspensionEnded(_ outcome: Result<Asleep, Refusal>) {
    switch outcome {
    case .success(let asleep):
      if asleep.missing == nil { forgetTrimImage() }
      missing = asleep.missing
      didFallAsleep(asleep)
      driver.send(.suspended(id))
      watch.wakeForWaitingInput()
    case .failure(let refusal):
      if let failure = refusal.stillStopped { return recoverStopped(refusal.text, failure) }
      notSuspended(refusal.text, staysAwake: refusal.staysAwake)
    }
  }

  private func notSuspended(_ reason: String, staysAwake: Bool = false) {
    didWake(reason: "can't be suspended: \(reason)")
    driver.send(staysAwake ? .staysAwake(id, reason) : .suspendFailed(id, reason))
  }

  /// Recovers a worker that isn't to be suspended, but couldn't be woken. If the recovery fails,
  /// too, the engine treats the worker as suspended, and tries to wake it again and again.
  private func recoverStopped(_ reason: String, _ failure: String) {
    log(.warning, "it was not suspended (\(reason)), and could not be woken: \(failure)")
    begin({ $0.recover(expecting: .unknown(), then: $1) }) { $0.stoppedRecovered($1, reason) }
  }

  private func stoppedRecovered(_ outcome: RecoveryOutcome, _ reason: String) {
    guard !hasEnded else { return }
    if case .success(let done) = outcome.result {
      missing = done.stillMissing
      resumeMethod = .thaw(mayBeStopped: false)
      return notSuspended(reason)
    }
    didRecover(outcome, call: "it was not suspended (\(reason)), and is still stopped")
  }

  private func hibernationEnded(
    _ outcome: Result<(RestingImage, HibernationResult), HibernationError>
  ) {
    switch outcome {
    case .success((let image, let result)):
      missing = nil
      resumeMethod = .image(ImageOnDisk(resting: image, length: result.imageSize.bytes))
      restoreMode = .of(image.restore)
      driver.send(.hibernated(id, result))
    case .failure(let error):
      log(.warning, "can't be hibernated: \(error)")
      // This comes first: the engine treats the worker as suspended after the event, and may resume
      // it or ask it to end at once. Both would let it run with unverified memory.
      if error.aftermath == .unverifiable { killUnverified() }
      let permanent = error.aftermath == .ineligible || error.aftermath == .unverifiable
      driver.send(.hibernateFailed(id, error.description, permanent: permanent))
    }
  }

  private func thawEnded(_ failure: String?, _ started: AwakeInstant) {
    guard let failure else {
      didWake()
      return driver.send(.resumed(id, timers.awake - started))
    }
    driver.send(.resumeFailed(id, failure, intact: true))
    stayAsleep()
  }

  private func resumeEnded(
    _ outcome: Result<ResumeSummary, HibernationError>, _ started: AwakeInstant
  ) {
    switch outcome {
    case .success(let done):
      didRestore(done)
      driver.send(.resumed(id, timers.awake - started))
    case .failure(let error):
      log(.error, "can't be resumed: \(error)")
      // The memory is restored, and the image isn't valid any more. A second resume would miss the
      // image, and kill a worker that lacks nothing.
      if error.phase == .waking { resumeMethod = .recover(nil) }
      // The worker's end isn't a fault of its memory, and will be reported as an end.
      let hasEnded = error.aftermath == .vanished
      let isIntact = error.aftermath == .intact || error.aftermath == .ineligible || hasEnded
      driver.send(.resumeFailed(id, error.description, intact: isIntact))
      if hasEnded { sleeps.kill(id) } else if isIntact { stayAsleep() }
    }
  }

  private func didRestore(_ outcome: ResumeSummary) {
    if let reason = outcome.eagerReason {
      restoreMode = .eager(reason)
      log(.info, "restored \(CodedText.eager(reason).text)")
    }
    missing = outcome.stillMissing
    resumeMethod = .thaw(mayBeStopped: false)
    didWake(fromImage: missing?.isTrimmed != true)
  }

  private func didInspect(_ state: SurvivorState) {
    guard !hasEnded else { return }
    switch state {
    case .asleep(.hibernated, let image): didFindAsleep(.hibernated, in: .recover(image))
    case .asleep: didFindAsleep(.suspended, in: resumeMethod.withoutImage)
    case .trimmed, .withoutImage, .inDoubt:
      begin({ $0.recover(expecting: .unknown(), then: $1) }, then: { $0.didRecover($1) })
    }
  }

  /// - Parameter call: why the worker has to be woken if its inputs aren't watched.
  private func didFindAsleep(
    _ condition: WorkerCondition, in resumeMethod: ResumeMethod, call: String = unwatched
  ) {
    self.resumeMethod = resumeMethod
    driver.send(.found(id, condition))
    wakeIfUnwatched(call)
  }

  private func didRecover(_ outcome: RecoveryOutcome, call: String = unwatched) {
    guard !hasEnded else { return }
    switch outcome.result {
    case .success(let done):
      didRestore(done)
      driver.send(.found(id, .running))
    case .failure(let error) where error.aftermath == .intact:
      log(.error, "can't be woken yet: \(error)")
      let condition = outcome.image == nil ? WorkerCondition.suspended : .hibernated
      didFindAsleep(condition, in: .recover(outcome.image), call: call)
    case .failure(let error):
      killUnverified()
      driver.send(.found(id, .unverifiable(error.description)))
    }
  }
}

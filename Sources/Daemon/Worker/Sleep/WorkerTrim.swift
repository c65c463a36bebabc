import Hibernation
import Lifecycle
import Policy

// Trims and fills of a running worker. It continues to run, but has one operation at a time.

extension WorkerSleep {
  static let stillMoved = "its memory is still being trimmed or filled"

  func trim() {
    guard mayBegin else { return }
    if isActing { return driver.send(.trimFailed(id, Self.stillMoved, permanent: false)) }
    let started = timers.now
    begin({ $0.move($0.memory.trim, then: $1) }, then: { $0.trimEnded($1, started) })
    expectOutcome(of: current) { $0.trimEnded(.failure(Self.lost), started) }
  }

  func fill() {
    guard mayBegin else { return }
    if isActing { return driver.send(.fillFailed(id, Self.stillMoved)) }
    begin({ $0.move($0.memory.fill, then: $1) }, then: { $0.fillEnded($1) })
    expectOutcome(of: current) { $0.fillEnded(.failure(Self.lost)) }
  }

  /// The time after which an outcome that hasn't come may be lost. The mechanism ends before it,
  /// and the engine waits longer.
  private static let outcomeTimeout = Duration.seconds(55)
  private static let lost = HibernationError(.checking, "its outcome was lost")

  /// Ends an operation whose thread has ended without an outcome. Otherwise the worker would count
  /// as busy for ever.
  private func expectOutcome(
    of operation: OperationFlag?, orElse fail: @escaping (WorkerSleep) -> Void
  ) {
    guard let operation else { return }
    timers.after(Self.outcomeTimeout) { [weak self] in
      guard let self, isBusy, current === operation else { return }
      guard abandon(operation) else { return expectOutcome(of: operation, orElse: fail) }
      fail(self)
      if !isOver { operationHasEnded() }
    }
  }

  private typealias Outcome = Result<TrimSummary, HibernationError>

  /// Begins an operation that moves the worker's memory.
  private func move(
    _ operation: (HibernationTarget, @escaping (Outcome) -> Void) -> OperationFlag,
    then: @escaping (Outcome) -> Void
  ) {
    guard let worker, worker.ending?.hasBegun != true, let target = worker.target() else {
      return refuse(then, .failure(.noProcess))
    }
    worker.measuring.didMoveMemory()
    current = operation(target) { [weak worker] outcome in
      worker?.measuring.didMoveMemory()
      then(outcome)
    }
  }

  private func trimEnded(_ outcome: Outcome, _ started: Instant) {
    switch outcome {
    case .success(let summary):
      worker?.sample.anonymous = UInt64(clamping: summary.residentAfter)
      let result = TrimResult(
        residentBefore: ByteCount(summary.residentBefore),
        residentAfter: ByteCount(summary.residentAfter), swapped: ByteCount(summary.swapped),
        duration: timers.now - started, stoppedFor: summary.stoppedFor)
      log(.info, result.sentence)
      driver.send(.trimmed(id, result))
    case .failure(let error):
      log(.warning, "can't be trimmed: \(error)")
      if error.aftermath == .unverifiable { killUnverified() }
      let permanent = error.aftermath == .ineligible || error.aftermath == .unverifiable
      driver.send(.trimFailed(id, error.description, permanent: permanent))
    }
  }

  private func fillEnded(_ outcome: Outcome) {
    switch outcome {
    case .success(let summary):
      log(.info, "filled: \(ByteCount(summary.residentAfter)) in RAM")
      driver.send(.filled(id, swapped: ByteCount(summary.swapped)))
    case .failure(let error):
      log(.warning, "can't be filled: \(error)")
      driver.send(.fillFailed(id, error.description))
    }
  }
}

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
    earlyLoss = nil
    begin({ $0.moveOut(then: $1) }, then: { $0.trimEnded($1, started) })
    expectOutcome(of: current) {
      // Its memory may be in an image. A suspension or a release moves it back.
      $0.missing = MissingBytes(0, isTrimmed: true)
      $0.trimEnded(TrimOutcome(result: .failure(Self.lost)), started)
    }
  }

  func fill() {
    guard mayBegin else { return }
    if isActing { return driver.send(.fillFailed(id, Self.stillMoved)) }
    begin({ $0.moveIn(then: $1) }, then: { $0.fillEnded($1) })
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

  private func moveOut(then: @escaping (TrimOutcome) -> Void) {
    guard let worker, let image = makeOrder() else {
      return refuse(then, TrimOutcome(result: .failure(.noProcess)))
    }
    let order = TrimOrder(
      image: image, mechanism: worker.configuration.policy.trim.mechanism,
      diskObstacle: driver.state.diskObstacle(forTrimOf: id))
    move(worker, then: then) { memory.trim(order, then: $0) }
  }

  private func moveIn(then: @escaping (Result<TrimSummary, HibernationError>) -> Void) {
    guard let worker, worker.ending?.hasBegun != true, let target = worker.target() else {
      return refuse(then, .failure(.noProcess))
    }
    move(worker, then: then) { memory.fill(target, then: $0) }
  }

  private func trimEnded(_ outcome: TrimOutcome, _ started: Instant) {
    switch outcome.result {
    case .success(let summary):
      let took = timers.now - started
      worker?.sample.anonymous = UInt64(clamping: summary.residentAfter)
      missing = summary.missing
      if let worker, let length = outcome.imageLength {
        sleeps.imageDisk.didWriteImage(
          of: worker, length: length, bytes: Int64(clamping: summary.written), took: took)
        sleeps.imageDisk.sendReading()
      }
      let result = TrimResult(
        residentBefore: ByteCount(summary.residentBefore),
        residentAfter: ByteCount(summary.residentAfter), swapped: ByteCount(summary.swapped),
        inImage: summary.inImage.map { ByteCount($0) }, duration: took,
        stoppedFor: summary.stoppedFor)
      log(.info, result.sentence)
      driver.send(.trimmed(id, result))
      if let reason = earlyLoss { didLoseTrim(reason) }
    case .failure(let error):
      let isUnverifiable = error.aftermath == .unverifiable
      // The policy tries it with each worker, whatever this machine and this user permit.
      log(isUnverifiable ? .warning : .info, "can't be trimmed: \(error)")
      if isUnverifiable { killUnverified() }
      let permanent = error.aftermath == .ineligible || isUnverifiable
      driver.send(.trimFailed(id, error.description, permanent: permanent))
    }
  }

  /// Handles the report that all memory of the last trim came back.
  ///
  /// - Parameter reason: a clause, such as `it forks often`.
  func didLoseTrim(_ reason: String) {
    if isBusy {
      // The outcome of the trim may still be on its way.
      earlyLoss = reason
      return
    }
    // If memory is in an image, the report is about the trim before the last one.
    guard !isOver, let missing, missing.isTrimmed, missing.bytes == 0 else { return }
    earlyLoss = nil
    log(.notice, "all of its trimmed memory came back: \(reason)")
    driver.send(.trimLost(id, reason))
    sleeps.imageDisk.sendReading()
  }

  /// Reports the free disk space when the image of a trim isn't needed any more.
  func forgetTrimImage() {
    guard let missing, missing.isTrimmed else { return }
    self.missing = nil
    sleeps.imageDisk.sendReading()
  }

  private func fillEnded(_ outcome: Result<TrimSummary, HibernationError>) {
    switch outcome {
    case .success(let summary):
      forgetTrimImage()
      log(.info, "filled: \(ByteCount(summary.residentAfter)) in RAM")
      driver.send(.filled(id, swapped: ByteCount(summary.swapped)))
    case .failure(let error):
      log(.warning, "can't be filled: \(error)")
      driver.send(.fillFailed(id, error.description))
    }
  }
}

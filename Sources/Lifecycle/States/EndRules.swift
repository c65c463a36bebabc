import Policy

// The transitions from any state → terminating → terminated.

/// A termination under way.
struct Ending: Codable, Sendable, Equatable {
  var cause: Cause
  /// When SIGKILL follows SIGTERM. `nil`: SIGKILL was sent.
  var killBy: ExtensibleDeadline?
  var giveUpAt: Instant
  var hasGivenUp = false

  /// The time from SIGKILL until the termination counts as failed.
  static let timeout = Duration.seconds(5)
}

extension Engine {
  /// Whether the worker was sent SIGKILL and hasn't ended within 5 s (`Ending.timeout`).
  public func hasOutlivedKill(_ worker: WorkerID) -> Bool {
    index(of: worker).map { workers[$0].run.ending?.hasGivenUp == true } ?? false
  }

  /// The signal that asks the worker to end: its stop signal, or SIGABRT.
  enum EndSignal { case stop, abort }

  mutating func beginEnding(
    _ index: Int, _ cause: Cause, gracefully: Bool, by signal: EndSignal = .stop
  ) {
    move(index, to: .terminating, cause)
    workers[index].run.shed = nil
    workers[index].run.owesBackgroundShed = false
    workers[index].run.owesWarning = false
    workers[index].run.trim?.isWanted = false
    workers[index].run.trim?.end()
    workers[index].run.unanswered = nil
    let killAt = gracefully ? now + workers[index].policy.terminate.grace : now
    workers[index].run.ending = Ending(
      cause: cause, killBy: gracefully ? ExtensibleDeadline(killAt) : nil,
      giveUpAt: killAt + Ending.timeout)
    let name = workers[index].id
    guard gracefully else { return emit(.kill(name)) }
    emit(signal == .abort ? .abort(name) : .terminate(name))
  }

  mutating func advanceTerminating(_ index: Int) {
    guard let ending = workers[index].run.ending else { return }
    if let killBy = ending.killBy, now >= killBy.until {
      workers[index].run.ending?.killBy = nil
      emit(.kill(workers[index].id))
    }
    if !ending.hasGivenUp, now >= ending.giveUpAt {
      workers[index].run.ending?.hasGivenUp = true
      let text = "\(workers[index].id) did not end within \(Ending.timeout.text) of SIGKILL"
      failGoal(index, text)
      answerStarts(index, code: .failed, text: text)
      failWarns(index, text)
      failTrims(index, text)
    }
  }

  /// Sends SIGKILL again to a worker that didn't end after it, because its end is requested again.
  mutating func killAgain(_ index: Int) {
    guard workers[index].run.ending?.hasGivenUp == true else { return }
    workers[index].run.ending?.hasGivenUp = false
    workers[index].run.ending?.giveUpAt = now + Ending.timeout
    emit(.kill(workers[index].id))
  }

  mutating func recordExited(_ index: Int, _ status: ExitStatus) {
    let state = workers[index].state
    guard state.isAlive else { return }
    workers[index].lastExit = status
    let name = workers[index].id
    let ending = workers[index].run.ending
    recordWasForeground(index)
    move(index, to: .terminated, ending?.cause ?? .exited(status))
    // A start was requested while the worker was ending. It is carried out now.
    let restarts = state == .terminating ? workers[index].starts : []
    if !restarts.isEmpty { workers[index].starts = [] }
    if let ending { recordPutToSleep(index, ending.cause) }
    let reason = ending.map { $0.cause.sentence } ?? "\(status.sentence) while \(state.text)"
    concludeRun(index, "\(name) has ended: \(reason)")
    guard !restarts.isEmpty else { return }
    launch(
      index, for: nil, verb: workers[index].startsForFront ? .start : .restart,
      asked: workers[index].frontAsked)
    workers[index].starts = restarts
  }

  /// The engine forgets the worker, which continues to run.
  mutating func recordReleased(_ index: Int) {
    workers[index].forgetWhenGone = true
    guard workers[index].state.isAlive else { return }
    recordWasForeground(index)
    move(index, to: .terminated, workers[index].profile.leader == nil ? .released : .led())
    concludeRun(index, "\(workers[index].id) was released")
  }

  /// Ends the run: waiting requests are answered, and what belonged to the run is dropped.
  mutating func concludeRun(_ index: Int, _ text: String) {
    if workers[index].goal?.destination.isEnd ?? false {
      concludeGoal(index, code: .done, text: "\(workers[index].id) has ended")
    } else {
      failGoal(index, text)
    }
    answerStarts(index, code: .failed, text: text)
    failWarns(index, text)
    failTrims(index, text)
    workers[index].run = Run()
    workers[index].shadow.depth = nil
  }
}

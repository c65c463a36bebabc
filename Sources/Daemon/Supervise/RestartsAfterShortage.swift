import Lifecycle
import Policy

// A worker that was terminated for lack of memory is started again when there is room: its
// footprint fits without raising the pressure. If it is terminated again, the back-off grows. A
// worker that is larger than all of the memory isn't restarted, because it would be terminated
// without end.

extension RestartSupervisor {
  /// The time between two checks for room. Other programs may free memory without a change of the
  /// pressure level.
  private static let betweenRoomChecks = Duration.seconds(30)

  func endedForMemory(_ id: WorkerID, ran: Duration, rules: RestartRules, reason: String) {
    guard rules.condition.restartsAfterShortage else { return }
    if ran > rules.backoff.max { histories[id]?.memoryStreak = 0 }
    histories[id]?.memoryStreak += 1
    waitForRoom(id, reason)
    startFittingWorkers()
  }

  func waitForRoom(_ id: WorkerID, _ reason: String) {
    histories[id]?.plan = .waitingForMemory(reason: reason)
    if roomCheck.isUnderWay { return }
    roomCheck.wait(Self.betweenRoomChecks) { [unowned self] in startFittingWorkers() }
  }

  /// Ends the checks if no worker waits for room any more.
  func endRoomChecks() {
    let isNeeded = histories.values.contains {
      if case .waitingForMemory = $0.plan { true } else { false }
    }
    if !isNeeded { roomCheck.cancel() }
  }

  /// Starts the waiting workers that fit, the most important first and one second apart, so that
  /// they don't raise the pressure together. Call it also when the pressure is normal again.
  func startFittingWorkers() {
    var waiting: [(id: WorkerID, worker: WorkerUnit, reason: String)] = []
    for (id, history) in histories {
      if case .waitingForMemory(let reason) = history.plan, let worker = workers[id] {
        waiting.append((id, worker, reason))
      }
    }
    waiting.sort {
      ($1.worker.configuration.importance, $0.id) < ($0.worker.configuration.importance, $1.id)
    }
    var (planned, index) = (ByteCount.zero, 0)
    for (id, worker, reason) in waiting {
      let footprint = expectedFootprint(of: id)
      if driver.state.room(for: footprint) == .never {
        giveUpForSize(id, footprint: footprint, reason: reason)
      } else if driver.state.room(for: planned + footprint) == .enough {
        let streak = histories[id]?.memoryStreak ?? 1
        let delay = worker.configuration.restart.backoff.delay(afterRestarts: streak - 1)
        restart(id, after: delay + .seconds(index), reason, forMemory: true)
        planned += footprint
        index += 1
      } else {
        waitForRoom(id, reason)
      }
    }
  }

  func expectedFootprint(of id: WorkerID) -> ByteCount {
    histories[id]?.expectedFootprint ?? .zero
  }

  private func giveUpForSize(_ id: WorkerID, footprint: ByteCount, reason: String) {
    let text =
      "not restarted: it had \(footprint) when it was terminated (\(reason)), and the memory "
      + "(`memory.budget`) can't hold that; give it more, then `dormouse start \(id)`"
    histories[id]?.plan = nil
    record(problem: text, of: id)
    log(.error, "\(id): \(text)")
  }
}

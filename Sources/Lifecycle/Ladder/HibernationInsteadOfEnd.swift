import Policy

// Before a rung terminates a running worker, the worker is suspended and hibernated instead, if
// nothing prevents that. Its next request wakes it, whereas a termination costs its state.

/// How often the ladder has tried to hibernate a worker instead of terminating it, in one episode
/// of pressure.
struct HibernationTries: Codable, Sendable, Equatable {
  var episode: Int
  var count: Int

  /// A worker that is woken at once frees its memory for a moment only. It is terminated at the
  /// next try.
  static let max = 2
}

extension Engine {
  /// Hibernates the first worker in the order of termination that can be hibernated instead of
  /// being terminated by the rung. Returns whether there is one.
  mutating func hibernateRunning(
    of victims: Ladder.Rung.Victims, at level: PressureLevel
  ) -> Bool {
    guard victims != .suspended else { return false }
    let criteria = policy.terminate.criteria
    let candidates = workers.indices(victims.openGroup).filter {
      !isShadow($0) && mayHibernateInsteadOfEnd(workers[$0], at: level)
    }
    let keys = candidates.map { index in
      OrderKey(name: index, criteria) { workers[index].rank(by: $0, at: now) }
    }
    guard let first = keys.min()?.name else { return false }
    hibernateInsteadOfEnd(first, level)
    return true
  }

  private mutating func hibernateInsteadOfEnd(_ index: Int, _ level: PressureLevel) {
    let worker = workers[index]
    let count = hibernationTries(of: worker) + 1
    workers[index].run.hibernationTries = HibernationTries(episode: gauge.episode, count: count)
    if worker.profile.leader == nil {
      workers[index].run.returnsToFront = worker.state == .foreground ? true : nil
      workers[index].goal = Goal(destination: .hibernated, cause: .pressure(level), requests: [])
    } else {
      // The leader suspends the worker first, and decides to which state it returns.
      endShedOfLed(index)
      hibernate(index, .pressure(level))
    }
    // The ladder waits for one shed request, which must still be finished.
    let shedding =
      worker.profile.canShed ? worker.policy.background.shedDeadline + ShedInFlight.timeout : .zero
    // A trim that is under way ends first.
    let trimming = worker.isTrimming ? LadderState.timeout : .zero
    ladderState.step = .hibernating(
      worker.id, until: now + shedding + trimming + LadderState.timeout)
    ladderState.before = beforeTermination(of: index, at: level)
    ladderState.before?.hibernated = worker.id
  }

  /// Whether a running worker can be suspended and hibernated now. As for a request, unfinished
  /// work counts, and economic limits don't.
  func mayHibernateInsteadOfEnd(_ worker: WorkerRecord, at level: PressureLevel) -> Bool {
    // The leader of a led worker decides what may be suspended, and refuses otherwise.
    let isLed = worker.profile.leader != nil
    guard worker.state == .foreground || worker.state == .background, worker.goal == nil,
      isLed || worker.policy.background.suspendAfter != nil,
      !worker.hasUnfinishedWork(at: now),
      // A worker that works by its own timers only isn't idle, which doesn't count here.
      worker.isTrimmedByPolicy || now >= worker.suspensionRetryAt ?? .zero,
      worker.movable >= Self.minYield, hibernationTries(of: worker) < HibernationTries.max,
      policy.ladder.steps(at: level).contains(.hibernate)
    else { return false }
    var sleeper = worker
    sleeper.run.isMeasuredAsleep = true
    return obstacle(sleeper, to: .insteadOfEnd) == nil
  }

  private func hibernationTries(of worker: WorkerRecord) -> Int {
    guard let tries = worker.run.hibernationTries, tries.episode == gauge.episode else { return 0 }
    return tries.count
  }

  /// Whether the worker is hibernated, or will be. The ladder waits for that.
  func isBeingHibernated(_ worker: WorkerID) -> Bool {
    guard let index = index(of: worker) else { return false }
    return workers[index].state == .hibernating || workers[index].isHibernatedInsteadOfEnd
  }

  /// A worker that still runs when the step's time is over continues to run. It isn't tried again:
  /// it is terminated next.
  mutating func reviewHibernationInsteadOfEnd(_ step: LadderState.Step) {
    guard case .hibernating(let worker, let until) = step, now >= until,
      let index = index(of: worker), workers[index].isHibernatedInsteadOfEnd,
      workers[index].state.runs
    else { return }
    workers[index].run.hibernationTries?.count = HibernationTries.max
    failGoal(index, "\(worker) was not hibernated: it could not be suspended in time")
  }
}

/// The ladder's wait until a launching worker is ready. Then the worker can be hibernated, and its
/// launch wasn't in vain.
struct AwaitedReadiness: Codable, Sendable, Equatable {
  var until: Instant
  /// The memory that was available when the wait began.
  var available: ByteCount
  /// The episode of pressure. All workers that launch in one episode share one wait.
  var episode: Int

  static let timeout = Duration.seconds(10)
}

extension Engine {
  /// Whether the ladder waits for a launching worker that it would terminate. It waits once in a
  /// run, and not while memory falls further.
  mutating func awaitsReadiness(_ index: Int, at level: PressureLevel) -> Bool {
    guard mayHibernateWhenReady(workers[index], at: level) else { return false }
    guard let wait = workers[index].run.awaitedReadiness else {
      let shared = workers.lazy.compactMap(\.run.awaitedReadiness)
        .first { $0.episode == gauge.episode }
      let wait =
        shared
        ?? AwaitedReadiness(
          until: now + AwaitedReadiness.timeout, available: available, episode: gauge.episode)
      workers[index].run.awaitedReadiness = wait
      return mayLast(wait)
    }
    return mayLast(wait)
  }

  private func mayLast(_ wait: AwaitedReadiness) -> Bool {
    now < wait.until && available.bytes * 2 > wait.available.bytes
  }

  /// Whether a launching worker can be hibernated instead of terminated as soon as it is ready.
  func mayHibernateWhenReady(_ worker: WorkerRecord, at level: PressureLevel) -> Bool {
    guard worker.state == .launching, worker.run.isSpawned, !worker.run.missedReadiness,
      worker.goal?.destination.isEnd != true
    else { return false }
    var ready = worker
    ready.state = .foreground
    ready.goal = nil
    return mayHibernateInsteadOfEnd(ready, at: level)
  }

  /// The clause that ends the reason for a launching worker's termination.
  func outcomeOfAwaitedReadiness(_ index: Int) -> String {
    guard let wait = workers[index].run.awaitedReadiness else {
      return "; it can't be hibernated before it is ready"
    }
    return now < wait.until
      ? "; its readiness was not waited for: memory fell further"
      : "; it was not ready to be hibernated in \(AwaitedReadiness.timeout.text)"
  }
}

extension WorkerRecord {
  /// The ladder has chosen the worker, and it isn't hibernated yet.
  var isHibernatedInsteadOfEnd: Bool {
    guard let goal, goal.destination == .hibernated, case .pressure = goal.cause else {
      return false
    }
    return true
  }
}

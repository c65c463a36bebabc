import Policy

// What would move a worker out of its state.

extension Engine {
  func moves(of worker: WorkerRecord, at now: Instant) -> [Move] {
    let name = worker.id
    switch worker.state {
    case .terminated:
      return [Move(to: .launching, code: "request", sentence: "`dormouse start \(name)`")]
    case .launching: return launchMoves(worker, at: now) + pressureMoves(worker)
    case .foreground:
      return foregroundMoves(worker, at: now) + watchdogMoves(worker, at: now)
        + limitMoves(worker, at: now) + pressureMoves(worker)
    case .background:
      return backgroundMoves(worker, at: now) + watchdogMoves(worker, at: now)
        + limitMoves(worker, at: now) + pressureMoves(worker)
    case .suspended:
      return wakeMoves(worker) + heartbeatMoves(worker, at: now)
        + hibernationMoves(worker, at: now) + pressureMoves(worker)
    case .hibernated:
      return wakeMoves(worker) + heartbeatMoves(worker, at: now) + pressureMoves(worker)
    case .suspending: return outcomes(.suspended, of: worker, at: now)
    case .hibernating: return outcomes(.hibernated, of: worker, at: now)
    case .resuming: return outcomes(worker.resumesTo, of: worker, at: now)
    case .terminating: return endMoves(worker, at: now)
    }
  }

  /// The operation's success, or the inspection of the worker's state if there is no outcome.
  private func outcomes(_ next: WorkerState, of worker: WorkerRecord, at now: Instant) -> [Move] {
    var moves = [
      Move(to: next, code: "outcome", sentence: "\(worker.state.rawValue) it succeeds")
    ]
    if let transit = worker.run.transit {
      moves.append(
        Move(
          to: worker.origin, code: "inspection",
          sentence: "no outcome by then: its state is inspected", after: transit.inspectAt - now))
    }
    return moves
  }

  private func launchMoves(_ worker: WorkerRecord, at now: Instant) -> [Move] {
    var moves = [Move(to: .foreground, code: "readiness", sentence: "it reports readiness")]
    if let deadline = worker.readinessDeadline, worker.policy.watchdog.onTimeout == .terminate {
      moves.append(
        Move(
          to: .terminating, code: "launch_deadline", sentence: "not ready by then",
          after: deadline - now, key: "watchdog.launch"))
    }
    return moves
  }

  private func watchdogMoves(_ worker: WorkerRecord, at now: Instant) -> [Move] {
    guard let watchdog = worker.run.watchdog, let due = watchdog.dueAt, !isShadow(worker) else {
      return []
    }
    let text = "no WATCHDOG=1 for \(watchdog.interval.text)"
    return [Move(to: .terminating, code: "watchdog", sentence: text, after: due - now)]
  }

  private func foregroundMoves(_ worker: WorkerRecord, at now: Instant) -> [Move] {
    var moves = [
      Move(to: .background, code: "request", sentence: "`dormouse background \(worker.id)`")
    ]
    if let idleAt = worker.idleAt {
      moves.append(
        Move(
          to: .background, code: "time", sentence: "unless it is used", after: idleAt - now,
          key: "foreground.idle_after"))
    }
    if let limit = policy.foreground.max {
      let room = limit == 1 ? "another worker comes" : "more than \(limit) workers come"
      moves.append(
        Move(
          to: .background, code: "displacement", sentence: "\(room) to the foreground",
          key: "foreground.max"))
    }
    return moves
  }

  private func backgroundMoves(_ worker: WorkerRecord, at now: Instant) -> [Move] {
    var moves: [Move] = []
    let times = worker.suspensionObstacles(at: now).map(\.described.clearsIn)
    let wait = times.compactMap { $0 }.max() ?? .zero
    if times.allSatisfy({ $0 != nil }), !isShadow(worker) {
      moves.append(
        Move(
          to: .suspended, code: "time", sentence: "unless it is used", after: wait,
          key: "background.suspend_after"))
    }
    moves.append(
      Move(to: .foreground, code: "request", sentence: "`dormouse foreground \(worker.id)`"))
    if worker.policy.foreground.mode == .activity {
      moves.append(
        Move(
          to: .foreground, code: "traffic", sentence: "traffic or processor time",
          key: "foreground.mode"))
    }
    return moves
  }

  private func wakeMoves(_ worker: WorkerRecord) -> [Move] {
    let toFront = worker.policy.foreground.mode == .activity
    let others = workers.map(\.id).filter { wakesWith($0).contains(worker.id) }
    return [
      Move(to: .background, code: "request", sentence: "`dormouse wake \(worker.id)`"),
      Move(to: .foreground, code: "request", sentence: "`dormouse foreground \(worker.id)`"),
      Move(
        to: toFront ? .foreground : .background, code: "traffic",
        sentence: "a connection, or data on one of its sockets or pipes"),
    ]
      + others.map {
        Move(to: .background, code: "woken_with", sentence: "\($0) wakes (`wake_with`)")
      }
  }

  private func heartbeatMoves(_ worker: WorkerRecord, at now: Instant) -> [Move] {
    guard let due = worker.heartbeatAt else { return [] }
    return [
      Move(
        to: .background, code: "heartbeat", sentence: "its heartbeat is due", after: due - now,
        key: "background.heartbeat.every")
    ]
  }

  private func hibernationMoves(_ worker: WorkerRecord, at now: Instant) -> [Move] {
    guard !isShadow(worker) else { return [] }
    var moves: [Move] = []
    let times = obstacles(worker, to: .automatic, at: now).map(\.described.clearsIn)
    if times.allSatisfy({ $0 != nil }) {
      let wait = times.compactMap { $0 }.max() ?? .zero
      moves.append(
        Move(
          to: .hibernated, code: "time", sentence: "unless something wakes it", after: wait,
          key: "hibernate.after"))
    }
    let levels = PressureLevel.allCases.filter { policy.ladder[$0].contains(.hibernate) }
    if let level = levels.first, obstacle(worker, to: .pressure, at: now) == nil {
      moves.append(
        Move(
          to: .hibernated, code: "pressure", sentence: "memory pressure \(level.name)",
          key: "ladder.\(level.name)"))
    }
    return moves
  }

  /// The level from which on the worker may be terminated, or hibernated instead.
  private func pressureMoves(_ worker: WorkerRecord) -> [Move] {
    guard !isShadow(worker), let level = levelOfTermination(worker) else { return [] }
    let time = AwaitedReadiness.timeout.text
    let (next, text): (WorkerState, String) =
      if worker.state.runs, mayHibernateInsteadOfEnd(worker, at: level) {
        (.hibernated, ", instead of its end")
      } else if mayHibernateWhenReady(worker, at: level) {
        (.hibernated, " and ready within \(time), instead of its end")
      } else {
        (.terminating, " (`dormouse explain --next`)")
      }
    return [
      Move(
        to: next, code: "pressure",
        sentence: "memory pressure \(level.name), when it is next in order\(text)",
        key: "ladder.\(level.name)")
    ]
  }

  func levelOfTermination(_ worker: WorkerRecord) -> PressureLevel? {
    guard worker.profile.mayBeTerminated, worker.protection == nil else { return nil }
    let victims: Ladder.Rung.Victims
    switch worker.state {
    case .suspended, .hibernated: victims = .suspended
    case .background: victims = .background
    case .foreground, .launching: victims = .foreground
    default: return nil
    }
    return PressureLevel.allCases.first { policy.ladder[$0].contains(.terminate(victims)) }
  }

  private func endMoves(_ worker: WorkerRecord, at now: Instant) -> [Move] {
    var moves = [Move(to: .terminated, code: "end", sentence: "it ends")]
    if let killBy = worker.run.ending?.killBy {
      moves.append(
        Move(
          to: .terminated, code: "kill", sentence: "killed by SIGKILL",
          after: killBy.until - now, key: "terminate.grace"))
    }
    return moves
  }
}

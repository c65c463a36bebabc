import Policy

// `background.heartbeat`: a sleeping worker runs for a moment at intervals. That isn't a use: it
// changes neither recency nor what is learned about uses.

extension Engine {
  /// Begins a heartbeat if one is due. Called for a sleeping worker that nothing waits for and that
  /// no request wants in another state.
  mutating func considerHeartbeat(_ index: Int) {
    guard isHeartbeatDue(index) else { return }
    workers[index].run.lastBeat = now
    decisions += 1
    // Omitted while memory is short: it would cost some, and nothing waits for it.
    guard gauge.level == .normal else { return }
    if isShadow(index) {
      reportOnce(index, step: .heartbeat, text: "been woken: \(Cause.heartbeat.sentence)")
      return
    }
    workers[index].goal = Goal(destination: .background, cause: .heartbeat, requests: [])
  }

  /// Not inlined, so that the compiler doesn't copy the record.
  @inline(never)
  private func isHeartbeatDue(_ index: Int) -> Bool {
    workers[index].heartbeatAt.map { now >= $0 } ?? false
  }

  mutating func endHeartbeat(_ index: Int) {
    guard workers[index].run.beatUntil != nil else { return }
    workers[index].run.beatUntil = nil
    workers[index].lastUsed = now
    workers[index].uses.began(at: now)
  }

  mutating func beginHeartbeat(_ index: Int) {
    guard let rules = workers[index].policy.background.heartbeat else { return }
    workers[index].run.beatUntil = now + rules.lasting
  }
}

extension WorkerRecord {
  /// When the next heartbeat is due. `nil`: there is none in this state.
  var heartbeatAt: Instant? {
    guard let rules = policy.background.heartbeat,
      state == .suspended || state == .hibernated && rules.whileHibernated
    else { return nil }
    return max(run.lastBeat ?? run.suspendedSince, run.suspendedSince) + rules.every
  }
}

import Policy

// `terminate: ask`: before a worker is terminated for lack of memory, a notice is given, and
// `dormouse protect` keeps the worker. The ladder waits for the answer, but not while memory falls
// further.

/// A notice before a termination for lack of memory.
public struct TerminationNotice: Codable, Hashable, Sendable {
  /// When the notice was given.
  public var asked: Instant
  /// When the worker is terminated, unless something changes.
  public var until: Instant
  /// The pressure level at which the worker was chosen.
  public var level: PressureLevel
  /// Why the worker was chosen.
  public var why: String
  /// The memory that was available when the notice was given.
  var available: ByteCount
  /// The worker's state when the notice was given. In another state it may not be the next any
  /// more.
  var state: WorkerState
  var episode: Int

  /// A clause whose subject is the worker: `will be terminated in 5 s for lack of memory: … `
  public func sentence(of worker: WorkerID, at now: Instant) -> String {
    let left = max(.zero, until - now)
    return
      "will be terminated in \(left.text) for lack of memory: \(why); `dormouse protect "
      + "\(worker)` keeps it"
  }
}

extension Engine {
  /// Whether the ladder has to wait for an answer about the worker that it has chosen. The first
  /// call gives the notice.
  mutating func mustWaitForVeto(_ index: Int, _ reason: String, at level: PressureLevel) -> Bool {
    guard let time = workers[index].policy.terminate.ask else { return false }
    let worker = workers[index]
    if let notice = worker.run.notice, notice.episode == gauge.episode {
      // Memory has fallen since the notice: to a higher level, or to half of what was available.
      let isWorse = level > notice.level || available.bytes * 2 <= notice.available.bytes
      return now < notice.until && !isWorse
    }
    let notice = TerminationNotice(
      asked: now, until: now + time, level: level, why: reason, available: available,
      state: worker.state, episode: gauge.episode)
    workers[index].run.notice = notice
    ladderState.noticed = (ladderState.noticed ?? []) + [worker.id]
    emit(.willTerminate(worker.id, notice))
    return true
  }

  /// The clause that ends the reason for a termination, if the worker had a notice: `; asked, no
  /// veto in 5 s`.
  func outcomeOfNotice(_ index: Int) -> String {
    guard let notice = workers[index].run.notice else { return "" }
    return now < notice.until
      ? "; asked, not waited for: memory fell further"
      : "; asked, no veto in \((notice.until - notice.asked).text)"
  }

  /// Withdraws the notices that have lost their reason.
  mutating func reviewNotices() {
    guard let noticed = ladderState.noticed else { return }
    var left: [WorkerID] = []
    for worker in noticed {
      guard let index = index(of: worker), let notice = workers[index].run.notice else { continue }
      // The report of its termination says what followed.
      if workers[index].state == .terminating { continue }
      guard let reason = reasonToWithdraw(notice, workers[index]) else {
        left.append(worker)
        continue
      }
      workers[index].run.notice = nil
      emit(.willNotTerminate(worker, reason))
    }
    if left != noticed { ladderState.noticed = left.isEmpty ? nil : left }
  }

  private func reasonToWithdraw(_ notice: TerminationNotice, _ worker: WorkerRecord) -> String? {
    if let protection = worker.protection { return "vetoed: \(protection.sentence)" }
    if gauge.level < notice.level { return "memory pressure fell to \(gauge.level.name)" }
    // At a level that the operator has set, no pause delays a termination.
    let isSet = setPressure.map { $0.level >= notice.level } ?? false
    if !isSet, let pause = ladderState.pause, pause.level >= notice.level {
      return "its end wouldn't help"
    }
    let isElsewhere = worker.state != notice.state && !worker.state.isTransit
    return isElsewhere ? "it is \(worker.state.text) now" : nil
  }

  func considerNotices(_ next: inout EarliestDeadline) {
    for worker in ladderState.noticed ?? [] {
      next.consider(index(of: worker).flatMap { workers[$0].run.notice?.until })
    }
  }
}

import Policy

/// The terminations for memory that one report covers. The picture is taken before the first, and the
/// report is written when the burst is over: there is no time for it while memory is short.
struct JetsamBurst: Codable, Sendable, Equatable {
  var report: JetsamReport
  var victims: [WorkerID: Victim] = [:]

  struct Victim: Codable, Sendable, Equatable {
    var why: String
    var isGone = false
  }

  mutating func markGone(_ worker: WorkerID) { victims[worker]?.isGone = true }

  func finished(availableAfter: ByteCount) -> JetsamReport {
    var report = report
    report.availableAfter = availableAfter
    for place in report.entries.indices {
      guard let victim = victims[report.entries[place].worker] else { continue }
      report.entries[place].victimBecause = victim.why
      report.entries[place].gaveBack = victim.isGone ? report.entries[place].footprint : nil
    }
    return report
  }
}

extension Engine {
  /// A worker was terminated for memory, and the report isn't written yet.
  public var isTerminatingForMemory: Bool { ladderState.burst != nil }

  mutating func openBurst(at level: PressureLevel) {
    guard ladderState.burst == nil else { return }
    let order = living()
    let largest = order.max {
      workers.standing($0, at: now).footprint < workers.standing($1, at: now).footprint
    }
    ladderState.burst = JetsamBurst(
      report: JetsamReport(
        at: now, level: level, why: whyHolding(), budget: budget, availableBefore: available,
        availableAfter: available, largest: largest.map { workers[$0].id },
        entries: order.map(entry)))
  }

  private func entry(_ index: Int) -> JetsamReport.Entry {
    let standing = workers.standing(index, at: now)
    return JetsamReport.Entry(
      worker: workers[index].id, state: workers[index].state, band: standing.band,
      footprint: standing.footprint, peakFootprint: workers[index].run.peakFootprint,
      sinceUse: standing.isInFront ? .zero : now - standing.lastUsed,
      age: now - workers[index].run.launchAskedAt)
  }

  /// Ends the burst when the memory has recovered and settled, or when the ladder has nothing left to
  /// free. It doesn't wait for `clear_after`: the operator reads the reason soon after the termination.
  mutating func closeBurst(nothingLeft: Bool) {
    guard let burst = ladderState.burst else { return }
    let hasRecovered = actingLevel < burst.report.level && hasSettled
    guard nothingLeft || hasRecovered else { return }
    ladderState.burst = nil
    emit(.report(burst.finished(availableAfter: available)))
  }
}

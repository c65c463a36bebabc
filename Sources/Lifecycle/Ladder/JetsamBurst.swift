import Policy

/// The terminations for lack of memory that one report covers. The workers are recorded before the
/// first termination, and the report is written when the burst is over: there is no time for it
/// while memory is short.
struct JetsamBurst: Codable, Sendable, Equatable {
  var report: JetsamReport
  var victims: [WorkerID: Victim] = [:]

  struct Victim: Codable, Sendable, Equatable {
    var why: String
    var isGone = false
    /// The part of its footprint that was in RAM. `nil`: an earlier version has written the
    /// journal.
    var resident: ByteCount?
  }

  mutating func finish(availableAfter: ByteCount) {
    report.availableAfter = availableAfter
    // A burst has few victims among all workers, and they are among the first entries.
    var left = victims.count
    for index in report.entries.indices where left > 0 {
      guard let victim = victims[report.entries[index].worker] else { continue }
      left -= 1
      report.entries[index].victimBecause = victim.why
      report.entries[index].gaveBack =
        victim.isGone ? victim.resident ?? report.entries[index].footprint : nil
    }
  }
}

extension Engine {
  /// Whether a worker was terminated for lack of memory, and the report isn't written yet.
  public var isTerminatingForMemory: Bool { ladderState.burst != nil }

  mutating func openBurst(at level: PressureLevel) {
    guard ladderState.burst == nil else { return }
    refresh()
    workers.rankForTermination(by: policy.terminate, at: now)
    let entries = workers.termination.entries(at: now)
    ladderState.burst = JetsamBurst(
      report: JetsamReport(
        at: now, level: level, why: levelReason(), budget: budget, availableBefore: available,
        availableAfter: available,
        largest: entries.max { $0.footprint < $1.footprint }?.worker, entries: entries))
  }

  /// Ends the burst when memory has recovered and the last measurement shows it, or when the ladder
  /// has nothing left to free. It doesn't wait for `clear_after`: the operator reads the reason
  /// soon after the termination.
  mutating func closeBurst(nothingLeft: Bool) {
    guard let level = ladderState.burst?.report.level else { return }
    let hasRecovered = actingLevel < level && hasSettled
    // Moved out of the state, so that the report's list is changed in place.
    guard nothingLeft || hasRecovered, var burst = ladderState.burst.take() else { return }
    burst.finish(availableAfter: available)
    emit(.report(burst.report))
  }
}

/// One burst of terminations for lack of memory. It is reported when the burst is over.
public struct JetsamReport: Codable, Hashable, Sendable {
  public var at: Instant
  /// The pressure level when the burst began.
  public var level: PressureLevel
  /// What had been measured when the burst began, as text.
  public var why: String
  /// The memory that the policy distributes: that of the machine, or of the simulated device.
  public var budget: ByteCount
  /// The available memory when the burst began.
  public var availableBefore: ByteCount
  /// The available memory when the burst ended.
  public var availableAfter: ByteCount
  /// The live worker with the largest footprint when the burst began.
  public var largest: WorkerID?
  /// All live workers as they were when the burst began, in the order of termination.
  public var entries: [Entry]

  /// One worker as it was when the burst began.
  public struct Entry: Codable, Hashable, Sendable {
    public var worker: WorkerID
    public var state: WorkerState
    /// The band, with the importance and the bonus for early wakes.
    public var band: Int
    public var footprint: ByteCount
    public var peakFootprint: ByteCount
    /// The time since the worker was last used; zero in the foreground.
    public var sinceUse: Duration
    /// The time since the worker was launched or adopted.
    public var age: Duration
    /// Why the worker was chosen. `nil`: it wasn't terminated.
    public var victimBecause: String?
    /// How much memory the termination freed.
    public var gaveBack: ByteCount?
    /// What protected the worker from termination. `nil`: nothing.
    public var protection: Protection?
  }
}

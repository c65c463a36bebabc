import Control
import Journal
import Lifecycle
import Policy

// These initializers make reports of the engine's reasons, each with its code, and of tallies.

extension CodedText {
  init(_ cause: Cause) { self.init(cause.code, cause.sentence) }
  /// - Parameter left: the time after which the protection ends by itself; nil if it doesn't.
  init(_ protection: Protection, for left: Duration? = nil) {
    self.init(protection.code, protection.sentence(for: left))
  }
  init(_ verdict: Verdict) { self.init(verdict.code, verdict.sentence) }
  /// A report of how a run ended.
  init(_ exit: ExitRecord) { self.init(exit.status?.code ?? "launch_failed", exit.why) }
}

extension ShedReport {
  init(_ record: ShedRecord) {
    self.init(
      code: record.after < record.before ? "gave_back" : "gave_nothing_back",
      text: "\(record.sentence) \(record.kind.text)",
      occasion: record.kind == .memoryWarning ? "warning" : "background",
      isAnswered: record.answered, before: record.before.bytes, after: record.after.bytes)
  }
}

extension TrimState {
  fileprivate var code: String {
    if last != nil { return "trimmed" }
    if loss != nil { return "lost" }
    return sinceLast != nil ? "filled" : "not_trimmed"
  }
}

extension TrimReport {
  init(_ trim: TrimState) {
    self.init(code: trim.code, text: trim.sentence, swapped: trim.swapped.bytes, trims: trim.count)
    underWay = trim.underWay?.rawValue
    nextSeconds = trim.next?.seconds
    reason = trim.obstacles.first.map { CodedText($0.code, $0.sentence) }
    guard let result = trim.last else { return }
    last = Last(
      secondsAgo: trim.sinceLast?.seconds ?? 0, residentBefore: result.residentBefore.bytes,
      residentAfter: result.residentAfter.bytes, swapped: result.swapped.bytes,
      inImage: result.inImage?.bytes, seconds: result.duration.seconds,
      stoppedSeconds: result.stoppedFor.seconds)
    cameBack = trim.cameBack.bytes
    cameBackSeconds = trim.cameBackAfter?.seconds
  }
}

extension EarlyWakeReport {
  init(_ record: EarlyWake, at now: Instant) {
    self.init(
      text: record.sentence(at: now), count: record.count,
      lastSecondsAgo: (now - record.last).seconds, bandBonus: record.bonus,
      raised: record.backOffs.map {
        RaisedIdle(
          key: $0.key.path, declaredSeconds: $0.base.seconds, seconds: $0.idle.seconds)
      })
  }
}

extension ShadowReport {
  /// Makes the report; nil if the worker's policy would have done nothing.
  init?(_ summary: ShadowSummary?) {
    guard let summary, !summary.isEmpty else { return nil }
    self.init(
      text: summary.sentence, suspensions: summary.suspensions,
      hibernations: summary.hibernations, terminations: summary.terminations,
      freed: summary.freed.bytes, wakes: summary.wakes, wakeSeconds: summary.wakeTime.seconds)
  }
}

extension ExitStatusReport {
  init(_ status: ExitStatus) {
    self.init(code: status.code, text: status.sentence)
    switch status {
    case .exited(let code): self.status = code
    case .signaled(let number): signal = number
    case .outOfMemory, .unknown: break
    }
  }
}

extension WorkerCounters {
  /// - Parameter written: the bytes that were written to the worker's images.
  init(_ tally: WorkerTally, written: Int64) {
    self.init()
    launches = tally.launches
    failedLaunches = tally.failedLaunches
    suspensions = tally.suspensions
    hibernations = tally.hibernations
    wakes = tally.wakes
    resumes = tally.resumes
    resumeSeconds = Double(tally.resumeNanoseconds) / 1e9
    trims = tally.trims
    trimmed = tally.trimmed
    warnings = tally.warnings
    freed = tally.freed
    self.written = written
    footprintByteSeconds = tally.byteSeconds
    ends.memory = tally.memoryTerminations
    ends.watchdog = tally.watchdogTerminations
    ends.requested = tally.stops
    ends.completed = tally.exits
    ends.crashed = tally.crashes
    states = WorkerState.allCases.compactMap { state in
      tally.nanoseconds[state.rawValue].map {
        StateTime(state: state.rawValue, seconds: Double($0) / 1e9)
      }
    }
  }
}

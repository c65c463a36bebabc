import Policy

// The learned cost of a return: launches until readiness, and resumes by the memory that they
// restore.

/// How long a resume takes: a fixed time, and a learned rate for each byte. It is calculated from
/// the footprint and not from the image's size, because it is needed before there is an image.
struct ResumeRate: Codable, Sendable, Hashable {
  private var nanosecondsPerByte = Self.guess
  private(set) var isKnown = false

  /// The time to stop, map and start again, whatever the size.
  static let fixed = Duration.milliseconds(5)
  /// 1 ms/MB, which is about what an eager resume of a Python worker takes.
  private static let guess = 1_000_000.0 / 1_048_576
  /// Below this footprint the measured time is nearly all fixed time.
  private static let minBytes = Int64(262_144)

  func expected(_ footprint: ByteCount) -> Duration {
    Self.fixed + .nanoseconds(Int64(Double(footprint.bytes) * nanosecondsPerByte))
  }

  /// The highest rate, in nanoseconds a byte, at which a resume of this footprint takes no longer
  /// than `limit`. Negative: even a rate of zero takes longer.
  static func highest(for footprint: ByteCount, within limit: Duration) -> Double {
    let left = (limit - fixed).wholeNanoseconds
    // `expected` drops fractions of a nanosecond, so anything below one more fits.
    return left < 0 ? -1 : Double(left + 1) / Double(footprint.bytes)
  }

  /// Whether the rate is at most `highest`. In doubt it is: both numbers were rounded.
  func isWithin(_ highest: Double) -> Bool { nanosecondsPerByte <= highest * (1 + 1e-9) }

  /// Whether the rates differ by more than a tenth. A smaller change isn't worth examining workers
  /// again.
  func differs(from other: ResumeRate) -> Bool {
    isKnown != other.isKnown
      || (nanosecondsPerByte - other.nanosecondsPerByte).magnitude > other.nanosecondsPerByte / 10
  }

  /// Moves the rate by a quarter of the difference to the new measurement.
  mutating func learn(_ cost: Duration, _ footprint: ByteCount) {
    guard footprint.bytes >= Self.minBytes else { return }
    let spent = Double(max(.zero, cost - Self.fixed).wholeNanoseconds)
    let rate = spent / Double(footprint.bytes)
    nanosecondsPerByte = isKnown ? nanosecondsPerByte + (rate - nanosecondsPerByte) / 4 : rate
    isKnown = true
  }
}

extension Engine {
  /// The expected time by the worker's own rate, or by that of all workers if it has none.
  func expectedResume(of worker: WorkerRecord) -> Duration {
    (worker.resumeRate.isKnown ? worker.resumeRate : resumeRate).expected(worker.footprint)
  }

  mutating func learnResumeCost(_ index: Int, cost: Duration, footprint: ByteCount) {
    workers[index].resumeCost = cost
    workers[index].resumeRate.learn(cost, footprint)
    latestResumeRate.learn(cost, footprint)
    guard latestResumeRate.differs(from: resumeRate) else { return }
    resumeRate = latestResumeRate
    workers.markPendingOfDue(room: diskRoom, resumeRate)
  }

  /// Averages the new measurement with the last value, half each: launches differ, and one slow
  /// launch shouldn't count forever.
  mutating func learnLaunchCost(_ index: Int, _ cost: Duration) {
    workers[index].launchCost = workers[index].launchCost.map { ($0 + cost) / 2 } ?? cost
  }
}

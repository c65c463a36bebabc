import Policy

// What a return costs, learned: launches to readiness, resumes by the memory that they restore.

/// How long a resume takes: a fixed part, and a learned rate for each byte. It uses the footprint and
/// not the image size, because the question comes before there is an image.
struct ResumeRate: Codable, Sendable, Hashable {
  private var nanosecondsPerByte = Self.guess
  private(set) var isKnown = false

  /// The time to stop, map and start again, whatever the size.
  static let fixed = Duration.milliseconds(5)
  /// 1 ms a MB, which is about what an eager resume of a Python worker takes.
  private static let guess = 1_000_000.0 / 1_048_576
  /// Under this the fixed part is all that is measured.
  private static let minBytes = Int64(262_144)

  func expected(_ footprint: ByteCount) -> Duration {
    Self.fixed + .nanoseconds(Int64(Double(footprint.bytes) * nanosecondsPerByte))
  }

  /// The highest rate with which a resume of this footprint takes no longer than `limit`, in nanoseconds a byte;
  /// negative: none does.
  static func highest(for footprint: ByteCount, within limit: Duration) -> Double {
    let left = (limit - fixed).wholeNanoseconds
    // A part of a nanosecond isn't counted.
    return left < 0 ? -1 : Double(left + 1) / Double(footprint.bytes)
  }

  /// In doubt it is: both numbers were rounded.
  func isWithin(_ highest: Double) -> Bool { nanosecondsPerByte <= highest * (1 + 1e-9) }

  /// A difference of more than a tenth: less isn't worth examining workers again.
  func differs(from other: ResumeRate) -> Bool {
    isKnown != other.isKnown
      || (nanosecondsPerByte - other.nanosecondsPerByte).magnitude > other.nanosecondsPerByte / 10
  }

  /// Takes a quarter of each new measurement.
  mutating func learn(_ cost: Duration, _ footprint: ByteCount) {
    guard footprint.bytes >= Self.minBytes else { return }
    let spent = Double(max(.zero, cost - Self.fixed).wholeNanoseconds)
    let rate = spent / Double(footprint.bytes)
    nanosecondsPerByte = isKnown ? nanosecondsPerByte + (rate - nanosecondsPerByte) / 4 : rate
    isKnown = true
  }
}

extension Engine {
  /// The worker's own rate, otherwise the rate learned from all others.
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

  /// Takes half of each new measurement: launches differ, and one bad one shouldn't count for ever.
  mutating func learnLaunchCost(_ index: Int, _ cost: Duration) {
    workers[index].launchCost = workers[index].launchCost.map { ($0 + cost) / 2 } ?? cost
  }
}

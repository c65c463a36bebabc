import Policy

// Regret: the expected cost of a worker's return, for each byte that it frees.
//
//     chance of use soon × cost of coming back / bytes freed
//
// The chance comes from the intervals between uses, learned as an exponentially weighted mean (a
// quarter of each new one). For uses at random with a rate that is known only by one mean m, the
// chance that the next falls within a horizon h is h / (h + m): the predictive distribution of an
// exponential with a gamma prior (Lomax). A worker that was used only once counts as one with m =
// h. A worker that is unused for longer than its mean is assumed to have become rarer. Its age
// counts as the mean then, in powers of two of a second, so that an order by regret changes seldom
// and at known instants (`regretChangesAt`).

/// When a worker was used, as far as that was observed.
struct UseHistory: Codable, Sendable, Hashable {
  var lastStart: Instant?
  private(set) var meanInterval: Duration?

  mutating func began(at now: Instant) {
    if let lastStart, now > lastStart {
      let interval = now - lastStart
      meanInterval = meanInterval.map { $0 + (interval - $0) / 4 } ?? interval
    }
    lastStart = now
  }
}

/// The numbers behind one worker's regret.
public struct RegretTerms: Hashable, Sendable {
  /// The chance of a use within `horizon`, 0–1.
  public var chance: Double
  /// The learned mean interval between uses. `nil`: the worker has been used once at most.
  public var meanInterval: Duration?
  /// The time since the last use; zero in the foreground.
  public var sinceUse: Duration
  /// The cost of a return: a relaunch or a resume.
  public var cost: Duration
  /// Whether the cost was measured. Otherwise it is a guess.
  public var isCostMeasured: Bool
  /// The worker's footprint.
  public var bytes: ByteCount

  /// The time that counts as soon: 10 min.
  public static let horizon = Duration.seconds(600)
  /// The assumed cost of a launch that hasn't been timed.
  public static let unknownLaunch = Duration.seconds(1)

  /// The regret, in milliseconds for each megabyte.
  public var value: Double {
    chance * cost.milliseconds / max(Double(bytes.bytes) / 1_048_576, 1.0 / 256)
  }
}

extension Engine {
  /// The regret of a hibernation: the worker returns by a resume.
  func resumeRegretTerms(of worker: WorkerRecord) -> RegretTerms {
    worker.regretTerms(
      at: now, cost: expectedResume(of: worker), isCostMeasured: worker.resumeRate.isKnown)
  }
}

extension WorkerRecord {
  /// The regret of a termination: the worker returns by a relaunch.
  func relaunchRegret(at now: Instant) -> RegretTerms {
    regretTerms(
      at: now, cost: launchCost ?? RegretTerms.unknownLaunch, isCostMeasured: launchCost != nil)
  }

  func regretTerms(at now: Instant, cost: Duration, isCostMeasured: Bool) -> RegretTerms {
    let age = now - lastUse(at: now)
    let interval = max(expectedInterval, Self.ageClass(age))
    let horizon = Double(RegretTerms.horizon.wholeNanoseconds)
    return RegretTerms(
      chance: horizon / (horizon + Double(interval.wholeNanoseconds)),
      meanInterval: uses.meanInterval, sinceUse: age, cost: cost, isCostMeasured: isCostMeasured,
      bytes: footprint)
  }

  private var expectedInterval: Duration { uses.meanInterval ?? RegretTerms.horizon }

  /// The next instant at which time alone changes the worker's regret.
  func regretChangesAt(_ now: Instant) -> Instant? {
    guard state != .foreground else { return nil }
    var age = max(Self.ageClass(now - lastUsed) * 2, .seconds(1))
    while age <= expectedInterval { age *= 2 }
    return lastUsed + age
  }

  /// The largest power of two of a second that isn't over `age`. Zero: `age` is under a second.
  static func ageClass(_ age: Duration) -> Duration {
    let seconds = age.components.seconds
    guard seconds > 0 else { return .zero }
    return .seconds(Int64(1) << (63 - seconds.leadingZeroBitCount))
  }
}

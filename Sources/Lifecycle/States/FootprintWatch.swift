import Policy

// The records for `limits.footprint`: since when a worker is over a limit, and how often it was
// restarted.

/// A footprint that was over a limit.
public struct FootprintExcess: Codable, Hashable, Sendable {
  /// The limit that was exceeded.
  public var step: FootprintLimits.Step
  public var footprint: ByteCount
  public var limit: ByteCount
  /// How long the footprint has been over the limit.
  public var lasted: Duration

  /// A clause such as `footprint 1.2 GB over limits.footprint.restart 1 GB for 30 s`.
  public var sentence: String {
    "footprint \(footprint) over \(step.path) \(limit) for \(lasted.text)"
  }
}

/// Since when the footprint of one run has been over each limit.
struct FootprintWatch: Codable, Sendable, Equatable {
  private var warnSince: Instant?
  private var hibernateSince: Instant?
  private var restartSince: Instant?
  private var reported: Steps = []

  private struct Steps: Codable, OptionSet, Sendable {
    let rawValue: UInt8
    init(rawValue: UInt8) { self.rawValue = rawValue }
    init(_ step: FootprintLimits.Step) {
      switch step {
      case .warn: rawValue = 1
      case .hibernate: rawValue = 2
      case .restart: rawValue = 4
      }
    }
  }

  func since(_ step: FootprintLimits.Step) -> Instant? {
    switch step {
    case .warn: warnSince
    case .hibernate: hibernateSince
    case .restart: restartSince
    }
  }

  private mutating func set(_ step: FootprintLimits.Step, _ since: Instant?) {
    switch step {
    case .warn: warnSince = since
    case .hibernate: hibernateSince = since
    case .restart: restartSince = since
    }
  }

  /// A limit can be reported again only after the footprint was below this share of it. Otherwise a
  /// footprint that varies around a limit would be reported at each measurement.
  private static let margin = 0.9

  mutating func measured(_ footprint: ByteCount, _ limits: FootprintLimits, at now: Instant) {
    for step in FootprintLimits.Step.allCases {
      let limit = limits[step]
      let isOver = limit.map { footprint > $0 } ?? false
      set(step, isOver ? since(step) ?? now : nil)
      let low = limit.map { Double($0.bytes) * Self.margin } ?? .infinity
      if Double(footprint.bytes) < low { reported.remove(Steps(step)) }
    }
  }

  /// Moves the times by the time that the machine slept.
  mutating func postpone(by time: Duration) {
    warnSince?.postpone(by: time)
    hibernateSince?.postpone(by: time)
    restartSince?.postpone(by: time)
  }

  func hasReported(_ step: FootprintLimits.Step) -> Bool { reported.contains(Steps(step)) }
  mutating func report(_ step: FootprintLimits.Step) { reported.insert(Steps(step)) }
}

/// A worker's restarts for its footprint, over all its runs.
public struct FootprintRestarts: Codable, Hashable, Sendable {
  /// The number of restarts.
  public var count = 0
  /// When the last restart began.
  public var last = Instant.zero
  /// The excess that caused the last restart.
  public var excess: FootprintExcess
  /// The number of runs in a row that were over the limit soon after their launch.
  var streak = 0
  /// Whether the worker is being terminated for its footprint, and hasn't been launched again yet.
  var isUnderWay = true

  /// A run that is over its limit within this time starts over it, so a restart changes nothing.
  static let startUp = Duration.seconds(60)

  /// The earliest time of the next restart: 1 min after the first run that began over the limit,
  /// doubled with each further one, at most an hour. `nil`: at any time.
  var notBefore: Instant? {
    guard streak > 0 else { return nil }
    return last + .seconds(min(60 << min(streak - 1, 6), 3600))
  }
}

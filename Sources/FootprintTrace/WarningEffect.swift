/// What one warning gave back, measured from outside.
public struct WarningEffect: Codable, Hashable, Sendable {
  /// Seconds since the recording began.
  public var at: Double
  /// Bytes: when the warning came, and when the footprint had come to rest.
  public var before: Int64
  public var after: Int64
  /// Seconds from the warning until the footprint fell no further.
  public var restSeconds: Double

  /// Bytes; 0 where it only grew.
  public var givenBack: Int64 { max(0, before - after) }

  enum CodingKeys: String, CodingKey { case at, before, after, restSeconds, givenBack }

  public init(at: Double, before: Int64, after: Int64, restSeconds: Double) {
    self.at = at
    self.before = before
    self.after = after
    self.restSeconds = restSeconds
  }

  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      at: try values.decode(Double.self, forKey: .at),
      before: try values.decode(Int64.self, forKey: .before),
      after: try values.decode(Int64.self, forKey: .after),
      restSeconds: try values.decode(Double.self, forKey: .restSeconds))
  }

  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(at, forKey: .at)
    try values.encode(before, forKey: .before)
    try values.encode(after, forKey: .after)
    try values.encode(givenBack, forKey: .givenBack)
    try values.encode(restSeconds, forKey: .restSeconds)
  }
}

extension WarningEffect {
  /// The fall is over when the footprint hasn't fallen for so long; seconds.
  static let quiet = 1.0
  /// Less than that is noise; bytes.
  static let noise: Int64 = 64 << 10

  /// Of all warnings in it.
  ///
  /// A program that goes on allocating is at rest at the bottom of its fall, not where it is later.
  /// And what a hibernation takes away, the warning hasn't given back: the fall ends at the next
  /// warning, and where another state begins to be made.
  public static func all(in recording: Recording) -> [WarningEffect] {
    let warnings = recording.marks.filter { $0.kind == .warning }
    return warnings.map { warning in
      let limit = recording.marks.lazy.filter { $0.at > warning.at }.compactMap(\.endOfFall).min()
      return effect(of: warning, in: recording, until: limit ?? .infinity)
    }
  }

  private static func effect(
    of warning: FootprintMark, in recording: Recording, until limit: Double
  ) -> WarningEffect {
    let first = recording.place(at: warning.at)
    let before = recording.samples[first].footprint
    var (low, lowAt) = (before, warning.at)
    for sample in recording.samples[(first + 1)...] {
      if sample.at > lowAt + quiet || sample.at >= limit { break }
      if sample.footprint < low - noise { (low, lowAt) = (sample.footprint, sample.at) }
    }
    return WarningEffect(
      at: warning.at, before: before, after: low, restSeconds: lowAt - warning.at)
  }
}

extension FootprintMark {
  /// From when on a fall is somebody else's doing; nil: it isn't.
  fileprivate var endOfFall: Double? {
    switch kind {
    case .warning, .purge: at
    case .state:
      // Told when it is done; its memory left while it was under way.
      switch to {
      case "suspended", "hibernated", "terminated": at - (seconds ?? 0)
      default: nil
      }
    default: nil
    }
  }
}

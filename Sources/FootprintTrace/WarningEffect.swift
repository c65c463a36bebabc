/// How much memory one warning freed, measured from outside the worker.
public struct WarningEffect: Encodable, Hashable, Sendable {
  /// Seconds since the recording began.
  public var at: Double
  /// The footprint at the warning, in bytes.
  public var before: Int64
  /// The footprint when it had stopped falling, in bytes.
  public var after: Int64
  /// The freed memory in bytes. 0 if the footprint only grew.
  public var givenBack: Int64
  /// Seconds from the warning until the footprint stopped falling.
  public var fallSeconds: Double

  enum CodingKeys: String, CodingKey {
    case at, before, after, givenBack
    case fallSeconds = "restSeconds"
  }
}

extension WarningEffect {
  /// The fall has ended when the footprint hasn't fallen for this time, in seconds.
  static let quiet = 1.0
  /// Smaller changes are noise. In bytes.
  static let noise: Int64 = 64 << 10

  /// Returns the effects of all warnings in a recording.
  ///
  /// If a program continues to allocate, the lowest value after the warning counts, not a later
  /// one. Memory that a hibernation moves isn't freed by the warning: the fall ends at the next
  /// warning, or when a change of state begins.
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
    let first = recording.sampleIndex(at: warning.at)
    let before = recording.samples[first].footprint
    var (low, lowAt) = (before, warning.at)
    for sample in recording.samples[(first + 1)...] {
      if sample.at > lowAt + quiet || sample.at >= limit { break }
      if sample.footprint < low - noise { (low, lowAt) = (sample.footprint, sample.at) }
    }
    return WarningEffect(
      at: warning.at, before: before, after: low, givenBack: before - low,
      fallSeconds: lowAt - warning.at)
  }
}

extension FootprintMark {
  /// The moment from which the footprint falls for another reason than the warning. nil if the mark
  /// is no such reason.
  fileprivate var endOfFall: Double? {
    switch kind {
    case .warning, .purge: at
    case .state:
      // The mark is written when the change is complete. The memory was freed while the change was
      // in progress.
      switch to {
      case "suspended", "hibernated", "terminated": at - (seconds ?? 0)
      default: nil
      }
    default: nil
    }
  }
}

import Glibc

/// The number of durations of each size, in four buckets an octave, so that a quantile is right
/// within 10 %. Buckets can be added up to days and weeks.
public struct DurationBuckets: Codable, Hashable, Sendable {
  /// The counts by the number of the bucket. Bucket n begins at 100 µs × 2^(n/4).
  public private(set) var counts: [String: Int] = [:]

  private static let first = 100_000.0
  /// The last bucket ends at about 33 years.
  private static let last = 200

  public init() {}

  public mutating func add(nanoseconds: Int64) {
    let octaves = log2(max(Double(nanoseconds), Self.first) / Self.first)
    counts["\(min(Int(octaves * 4), Self.last))", default: 0] += 1
  }

  public static func += (left: inout DurationBuckets, right: DurationBuckets) {
    left.counts.merge(right.counts, uniquingKeysWith: +)
  }

  public var total: Int { counts.values.reduce(0, +) }

  /// Returns the seconds that `share` (0 to 1) of the durations don't exceed. nil: there are no
  /// durations.
  public func quantile(_ share: Double) -> Double? {
    let total = total
    guard total > 0 else { return nil }
    let rank = max(1, Int((share * Double(total)).rounded(.up)))
    var seen = 0
    let sorted = counts.compactMap { entry in Int(entry.key).map { ($0, entry.value) } }
      .sorted { $0.0 < $1.0 }
    for (bucket, count) in sorted {
      seen += count
      // The result is the middle of the bucket, on its logarithmic scale.
      if seen >= rank { return Self.first * exp2((Double(bucket) + 0.5) / 4) / 1e9 }
    }
    return nil
  }
}

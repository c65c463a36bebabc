import Policy

// A worker whose footprint is larger at each suspension, and never falls again, may leak memory.
// This file judges a series of footprints, oldest first, and knows nothing of engines. All of these
// conditions have to hold:
//
//     enough suspensions            12
//     nearly all pairs rise         90 %; a pair of equals counts half
//     the certain growth is large   Sen's lower bound of the slope (99 %), over the series:
//                                   10 % of the footprint and 4 MB
//     the newest are over the       a quarter of the series each
//     oldest
//     the growth lasts              the newer half and the newest third are at least half as
//                                   steep as the older half
//
// The slope is the median of the slopes of all pairs (Theil and Sen): one large or small footprint
// doesn't move it. The last condition distinguishes a leak from a cache that fills up. A suspicion
// that exists already needs less of each, so that it doesn't change with the noise.

/// Evidence that a worker may leak memory.
public struct LeakSuspicion: Codable, Hashable, Sendable {
  /// The footprint at the first of the suspensions.
  public var before: ByteCount
  /// The footprint at the last of the suspensions.
  public var footprint: ByteCount
  /// The number of suspensions from the first to the last.
  public var suspensions: Int
  /// The time from the first suspension to the last.
  public var span: Duration
  /// The median growth from one suspension to the next.
  public var perSuspension: ByteCount
  /// The footprint after the last memory warning. `nil`: there was none in this run.
  public var leftByWarning: ByteCount?

  /// The least number of suspensions for a suspicion.
  public static let minSuspensions = 12
  /// The least growth for a suspicion.
  public static let minGrowth = ByteCount.megabytes(4)

  /// Judges a series of footprints. `nil`: there is no reason for a suspicion.
  init?(_ series: [SuspendedFootprint], isSuspected: Bool = false) {
    let need = isSuspected ? Thresholds.kept : .new
    guard series.count >= Self.minSuspensions, let first = series.first, let last = series.last,
      // Nearly always this check is all that is needed.
      Double((last.footprint - first.footprint).bytes) >= need.growth(at: last.footprint),
      Self.newestAreOver(series)
    else { return nil }
    let slopes = PairSlopes(series)
    guard slopes.risingShare >= need.risingShare else { return nil }
    let steps = last.number - first.number
    let certain = slopes.lowerBound * Double(steps)
    guard certain >= need.growth(at: last.footprint) else { return nil }
    guard Self.lasts(series, need.lasts) else { return nil }
    before = first.footprint
    footprint = last.footprint
    suspensions = steps + 1
    span = last.at - first.at
    perSuspension = ByteCount(Int64(slopes.median.rounded()))
  }

  /// The suspicion with a later suspension, which isn't part of the series. `nil`: the footprint
  /// has fallen again since.
  func extended(
    from first: SuspendedFootprint, to last: SuspendedFootprint
  ) -> LeakSuspicion? {
    let half = ByteCount((footprint - before).bytes / 2)
    guard last.footprint >= before + half else { return nil }
    var result = self
    result.footprint = last.footprint
    result.suspensions = last.number - first.number + 1
    result.span = last.at - first.at
    return result
  }

  private static func lasts(_ series: [SuspendedFootprint], _ share: Double) -> Bool {
    let middle = series.count / 2
    let older = PairSlopes(Array(series[..<middle])).median
    return [series[middle...], series.suffix(series.count / 3)].allSatisfy { newer in
      let slope = PairSlopes(Array(newer)).median
      return slope > 0 && slope >= older * share
    }
  }

  private static func newestAreOver(_ series: [SuspendedFootprint]) -> Bool {
    let quarter = series.count / 4
    guard let high = series.prefix(quarter).map(\.footprint).max(),
      let low = series.suffix(quarter).map(\.footprint).min()
    else { return false }
    return low > high
  }

  /// The growth in 24 hours. `nil`: the time is too short to estimate it.
  public var perDay: ByteCount? {
    guard span >= .seconds(3600) else { return nil }
    let days = span.seconds / 86_400
    return ByteCount(Int64(Double((footprint - before).bytes) / days))
  }

  /// A clause such as `its footprint when it is suspended grew from 20 MB to 62 MB in 12
  /// suspensions and 3 h: 3.5 MB at each, 336 MB a day`.
  public var sentence: String {
    var text =
      "its footprint when it is suspended grew from \(before) to \(footprint) in \(suspensions) "
      + "suspensions and \(span.text): \(perSuspension) at each"
    if let perDay { text += ", \(perDay) a day" }
    if let leftByWarning { text += "; the last memory warning left \(leftByWarning)" }
    return text
  }
}

private struct Thresholds {
  var risingShare: Double
  var share: Double
  var minGrowth: ByteCount
  var lasts: Double

  static let new = Thresholds(
    risingShare: 0.9, share: 0.1, minGrowth: LeakSuspicion.minGrowth, lasts: 0.5)
  static let kept = Thresholds(
    risingShare: 0.8, share: 0.05, minGrowth: .megabytes(2), lasts: 0.25)

  /// The least growth, in bytes.
  func growth(at footprint: ByteCount) -> Double {
    max(Double(footprint.bytes) * share, Double(minGrowth.bytes))
  }
}

/// The slopes of all pairs of a series, in bytes for each suspension.
private struct PairSlopes {
  private var sorted: [Double] = []
  private let count: Int

  init(_ series: [SuspendedFootprint]) {
    count = series.count
    sorted.reserveCapacity(count * (count - 1) / 2)
    for (index, left) in series.enumerated() {
      for right in series[(index + 1)...] {
        let steps = max(right.number - left.number, 1)
        sorted.append(Double((right.footprint - left.footprint).bytes) / Double(steps))
      }
    }
    sorted.sort()
  }

  var median: Double { sorted.isEmpty ? 0 : sorted[sorted.count / 2] }

  var risingShare: Double {
    let falling = sorted.count { $0 < 0 }
    let level = sorted.count { $0 == 0 }
    guard !sorted.isEmpty else { return 0 }
    return (Double(sorted.count - falling) - Double(level) / 2) / Double(sorted.count)
  }

  /// The slope is larger than this with a probability of 99.5 % (Sen 1968, from the variance of
  /// Kendall's S).
  var lowerBound: Double {
    guard !sorted.isEmpty else { return 0 }
    let n = Double(count)
    let deviation = (n * (n - 1) * (2 * n + 5) / 18).squareRoot()
    let index = Int((Double(sorted.count) - 2.576 * deviation) / 2)
    return sorted[max(0, min(index, sorted.count - 1))]
  }
}

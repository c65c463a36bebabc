import Glibc

/// A logarithmic axis from a little below the smallest value to a little above the largest one.
public struct LogarithmicAxis: Sendable {
  private let low: Double
  private let high: Double

  public struct Tick: Hashable, Sendable {
    public var value: Double
    public var isDecade: Bool
    public var isLabelled: Bool
    public var text: String
  }

  /// Creates an axis for these values. Values that aren't positive can't be shown; they are drawn
  /// at its beginning.
  public init(of values: [Double]) {
    let logarithms = values.filter { $0 > 0 && $0.isFinite }.map(log10)
    let minimum = logarithms.min() ?? 0
    let maximum = logarithms.max() ?? 1
    // The axis has at least half a decade, so that noise doesn't appear as a difference.
    let missing = max(0, 0.5 - (maximum - minimum)) / 2
    low = minimum - missing - 0.08
    high = maximum + missing + 0.08
  }

  /// The position of a value on the axis, from 0 to 1.
  public func position(of value: Double) -> Double {
    guard value > 0, value.isFinite else { return 0 }
    return min(max((log10(value) - low) / (high - low), 0), 1)
  }

  /// The ticks: 1, 2, 3 … 9 of each decade. Ticks at 1, 2 and 5 have a number.
  public var ticks: [Tick] {
    let decades = Int(low.rounded(.down))...Int(high.rounded(.down))
    return decades.flatMap { decade in
      (1...9).compactMap { digit -> Tick? in
        let value = Double(digit) * pow(10, Double(decade))
        guard log10(value) >= low, log10(value) <= high else { return nil }
        return Tick(
          value: value, isDecade: digit == 1, isLabelled: [1, 2, 5].contains(digit),
          text: fixed(value, max(0, -decade)))
      }
    }
  }
}

import Glibc

extension SplitMix64 {
  /// A number that is distributed uniformly in 0..<1.
  mutating func unit() -> Double { Double(next() >> 11) / Double(UInt64(1) << 53) }

  mutating func exponential(mean: Double) -> Double { -mean * log(1 - unit()) }

  /// A standard normal number (Box and Muller 1958; only one of the pair is used).
  mutating func normal() -> Double { sqrt(-2 * log(1 - unit())) * cos(2 * .pi * unit()) }

  mutating func logNormal(median: Double, sigma: Double) -> Double {
    median * exp(sigma * normal())
  }
}

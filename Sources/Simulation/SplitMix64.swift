import Glibc

/// A small random generator whose whole state is one number, so that a seed replays a run on any
/// machine (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
public struct SplitMix64: RandomNumberGenerator, Sendable {
  private var state: UInt64

  public init(seed: UInt64) { state = seed }

  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// A separate generator, for choices that were added later: this one makes the other random
  /// choices as before.
  ///
  /// - Parameter mask: distinguishes generators that are separated from the same state.
  func separated(by mask: UInt64 = 0) -> SplitMix64 {
    var copy = self
    return SplitMix64(seed: copy.next() ^ mask)
  }

  /// Returns true in this percentage of cases, 0–100 %.
  mutating func chance(_ percent: Int) -> Bool { Int(next() % 100) < percent }

  /// Returns a random duration from zero up to this one, in whole milliseconds.
  mutating func duration(upTo maximum: Duration) -> Duration {
    let milliseconds =
      maximum.components.seconds * 1000 + maximum.components.attoseconds / 1_000_000_000_000_000
    return .milliseconds(Int64(next() % UInt64(max(1, milliseconds + 1))))
  }

  mutating func pick<Element>(_ choices: [Element]) -> Element {
    choices[Int(next() % UInt64(choices.count))]
  }
}

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

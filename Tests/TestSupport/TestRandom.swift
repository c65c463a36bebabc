import Glibc

/// SplitMix64 (Steele, Lea and Flood 2014): the same numbers from the same seed.
public struct TestRandom: RandomNumberGenerator, Sendable {
  public let seed: UInt64
  private var state: UInt64

  public init(seed: UInt64) {
    self.seed = seed
    state = seed
  }

  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var x = state
    x = (x ^ (x >> 30)) &* 0xbf58_476d_1ce4_e5b9
    x = (x ^ (x >> 27)) &* 0x94d0_49bb_1331_11eb
    return x ^ (x >> 31)
  }
}

extension TestRandom {
  /// DORMOUSE_TEST_SEED, or another number in each run. Printed when a test first uses it. With
  /// that line in the environment another run makes the same random choices.
  public static let runSeed: UInt64 = {
    let given = getenv("DORMOUSE_TEST_SEED").map { String(cString: $0) }
    if let given, UInt64(given) == nil { fatalError("DORMOUSE_TEST_SEED isn't a number: \(given)") }
    let seed = given.flatMap { UInt64($0) } ?? UInt64.random(in: 1 ... .max >> 16)
    // One write instead of print, whose buffer is lost when the process crashes.
    let line = Array("DORMOUSE_TEST_SEED=\(seed) repeats this run's random choices\n".utf8)
    _ = write(STDERR_FILENO, line, line.count)
    return seed
  }()

  /// Made from the run's seed and the calling function's name, so that a test makes the same
  /// choices alone and among others.
  public init(file: StaticString = #fileID, function: StaticString = #function) {
    self.init(runSeed: Self.runSeed, for: "\(file) \(function)")
  }

  /// FNV-1a (Fowler, Noll and Vo) of the text, from the seed.
  public init(runSeed: UInt64, for text: String) {
    self.init(
      seed: text.utf8.reduce(runSeed ^ 0xcbf2_9ce4_8422_2325) {
        ($0 ^ UInt64($1)) &* 0x100_0000_01b3
      })
  }
}

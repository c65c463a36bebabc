import Hibernation

/// The result of a run. docs/bench.md describes it as JSON.
public struct BenchReport: Codable, Hashable, Sendable {
  /// The version of Dormouse.
  public var version: String
  public var machine: BenchMachine
  public var command: [String]
  /// The URL or shell command of the request. With nil, times end when the wake is complete.
  public var request: String?
  /// zstd's level; nil: images were compressed with lz4.
  public var level: Int32?
  public var rounds: Int
  /// How the hibernated program was kept at rest: `frozen` in its cgroup, or stopped and `traced`.
  public var rest: String
  /// The time from the first launch to the first response, in milliseconds. The machine's caches
  /// may have been cold.
  public var firstLaunchMilliseconds: Double
  public var mechanisms: [BenchMechanismResult]
  public var hibernations: [BenchHibernation]
  /// How many times the server had closed the connection while the program slept.
  public var reconnections: Int
  /// True if a signal ended the run. `rounds` counts only the finished rounds then.
  public var isInterrupted: Bool?

  public func result(_ mechanism: BenchMechanism) -> BenchMechanismResult? {
    mechanisms.first { $0.mechanism == mechanism }
  }

  func median(_ mechanism: BenchMechanism) -> Double? { result(mechanism)?.statistics?.median }

  /// True if hibernation worked at least once.
  public var hibernates: Bool { !hibernations.isEmpty }

  /// The reason why hibernation didn't work; nil if it worked.
  public var hibernationRefusal: String? { result(.cached)?.refusal ?? result(.dropped)?.refusal }
}

/// The times of one mechanism.
public struct BenchMechanismResult: Codable, Hashable, Sendable {
  public var mechanism: BenchMechanism
  public var title: String
  /// The times from the order to wake to the first byte of the response, in the order of the
  /// rounds.
  public var milliseconds: [Double] = []
  public var statistics: BenchStatistics?
  /// The number of rounds in which the mechanism was refused.
  public var refusals = 0
  /// The reason for the last refusal.
  public var refusal: String?

  init(_ mechanism: BenchMechanism) {
    self.mechanism = mechanism
    title = mechanism.title
  }
}

/// The figures of one hibernation. Sizes are in bytes.
public struct BenchHibernation: Codable, Hashable, Sendable {
  public var milliseconds: Double
  /// The size of the pages that were put into the image.
  public var movedBytes: UInt64
  public var imageBytes: UInt64
  /// The program's anonymous memory in RAM before the hibernation.
  public var anonymousBefore: Int64
  /// The program's anonymous memory in RAM while it was hibernated.
  public var anonymousAfter: Int64

  public var givenBack: Int64 { anonymousBefore - anonymousAfter }
}

/// The statistics of a series of times, in milliseconds.
public struct BenchStatistics: Codable, Hashable, Sendable {
  public var minimum: Double
  public var median: Double
  /// The 95th percentile by nearest rank: 95 of 100 values are no larger. With fewer than 20 values
  /// it is the maximum.
  public var p95: Double
  public var maximum: Double

  /// Calculates the statistics. The result is nil if there are no values.
  public init?(_ values: [Double]) {
    let sorted = values.sorted()
    guard let first = sorted.first, let last = sorted.last else { return nil }
    minimum = first
    maximum = last
    let middle = sorted.count / 2
    median =
      sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    p95 = sorted[max((sorted.count * 95 + 99) / 100 - 1, 0)]
  }
}

extension BenchReport {
  /// The median of one figure of the hibernations; 0 if there are none.
  func medianHibernation<Value: BinaryInteger>(_ path: KeyPath<BenchHibernation, Value>) -> Double {
    BenchStatistics(hibernations.map { Double($0[keyPath: path]) })?.median ?? 0
  }
}

extension Compression {
  /// zstd's level; nil: lz4.
  var level: Int32? {
    if case .zstd(let level) = self { return level }
    return nil
  }
}

import Control

/// The result of a run. docs/bench.md documents it as JSON.
public struct BenchReport: Codable, Hashable, Sendable {
  /// Dormouse's version.
  public var version: String
  public var machine: BenchMachine
  public var command: [String]
  /// A URL or a shell command; nil: measured until the program was woken.
  public var request: String?
  public var level: Int32
  public var rounds: Int
  /// How the hibernated program rested: `frozen` in its cgroup, or stopped and `traced`.
  public var rest: String
  /// The time of the first launch up to the first response; the machine's caches may have been cold.
  public var firstLaunchMilliseconds: Double
  public var mechanisms: [BenchMechanismResult]
  public var hibernations: [BenchHibernation]
  /// How often the server had closed the connection while the program slept.
  public var reconnections: Int
  /// A signal ended the run; `rounds` counts the finished ones.
  public var isInterrupted: Bool?

  public func result(_ mechanism: BenchMechanism) -> BenchMechanismResult? {
    mechanisms.first { $0.mechanism == mechanism }
  }

  func median(_ mechanism: BenchMechanism) -> Double? { result(mechanism)?.statistics?.median }

  /// Hibernation worked at least once.
  public var hibernates: Bool { !hibernations.isEmpty }

  /// The reason why hibernation didn't work.
  public var hibernationRefusal: String? { result(.cached)?.refusal ?? result(.dropped)?.refusal }
}

/// One mechanism's times.
public struct BenchMechanismResult: Codable, Hashable, Sendable {
  public var mechanism: BenchMechanism
  public var title: String
  /// From the order to the first byte of the response, in the order of the rounds.
  public var milliseconds: [Double] = []
  public var statistics: BenchStatistics?
  /// The number of rounds in which it was refused, and the last reason.
  public var refusals = 0
  public var refusal: String?

  init(_ mechanism: BenchMechanism) {
    self.mechanism = mechanism
    title = mechanism.title
  }
}

/// One hibernation. Sizes in bytes.
public struct BenchHibernation: Codable, Hashable, Sendable {
  public var milliseconds: Double
  /// Pages that were put into the image.
  public var movedBytes: UInt64
  public var imageBytes: UInt64
  /// The program's anonymous memory in RAM.
  public var anonymousBefore: Int64
  public var anonymousAfter: Int64

  public var givenBack: Int64 { anonymousBefore - anonymousAfter }
}

/// In milliseconds.
public struct BenchStatistics: Codable, Hashable, Sendable {
  public var minimum: Double
  public var median: Double
  /// Nearest rank: 95 of 100 values are no larger. With fewer than 20 values it is the maximum.
  public var p95: Double
  public var maximum: Double

  /// nil for no values.
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
  /// Of the hibernations, figure by figure.
  func medianHibernation<Value: BinaryInteger>(_ path: KeyPath<BenchHibernation, Value>) -> Double {
    BenchStatistics(hibernations.map { Double($0[keyPath: path]) })?.median ?? 0
  }
}

/// A comparison of two recordings. `a` is the one before a change, `b` the one after it.
public struct RecordingComparison: Encodable, Sendable {
  /// One number of both recordings.
  public struct Metric: Encodable, Hashable, Sendable {
    public enum Unit: String, Codable, Sendable { case bytes, seconds, count }

    /// The name in JSON: `peak`, `average`, `p95`, `rest`, …
    public var key: String
    /// The name that people read.
    public var title: String
    public var unit: Unit
    /// The number of recording `a`.
    public var a: Double
    /// The number of recording `b`.
    public var b: Double
    /// How much larger `b` is than `a`, in `unit`.
    public var difference: Double
    /// The difference in percent of `a`. nil if `a` is 0.
    public var percent: Double?

    enum CodingKeys: String, CodingKey { case key, unit, a, b, difference, percent }
  }

  public var a: RecordingSummary
  public var b: RecordingSummary
  public var metrics: [Metric]
  /// Metrics that have grown more than permitted, one sentence each.
  public var exceeded: [String] = []

  public init(
    _ a: (name: String, recording: Recording), _ b: (name: String, recording: Recording),
    limit: Int64 = RecordingStatistics.defaultLimit
  ) {
    self.a = RecordingSummary(a.recording, name: a.name, limit: limit)
    self.b = RecordingSummary(b.recording, name: b.name, limit: limit)
    metrics = Self.metrics(self.a.statistics, self.b.statistics)
  }

  /// Returns the metric with this `key`.
  public func metric(_ key: String) -> Metric? { metrics.first { $0.key == key } }

  private static func metrics(
    _ a: RecordingStatistics, _ b: RecordingStatistics
  ) -> [Metric] {
    func metric(
      _ key: String, title: String, unit: Metric.Unit,
      _ value: (RecordingStatistics) -> Double
    ) -> Metric {
      let (before, after) = (value(a), value(b))
      let difference = after - before
      return Metric(
        key: key, title: title, unit: unit, a: before, b: after, difference: difference,
        percent: before == 0 ? nil : difference / before * 100)
    }
    func bytes(
      _ key: String, title: String, _ path: KeyPath<RecordingStatistics, Int64>
    ) -> Metric { metric(key, title: title, unit: .bytes) { Double($0[keyPath: path]) } }
    var metrics = [
      bytes("peak", title: "peak", \.peak), bytes("average", title: "average over time", \.average),
      bytes("p95", title: "95 % of the time under", \.p95),
      bytes("rest", title: "at rest, at the end", \.last),
      metric("secondsOver", title: "over \(shortSizeText(a.limit))", unit: .seconds, \.secondsOver),
      metric("warnings", title: "warnings", unit: .count) { Double($0.warnings.count) },
    ]
    if !a.warnings.isEmpty || !b.warnings.isEmpty {
      metrics.append(
        metric("givenBack", title: "freed by warnings, in all", unit: .bytes) { side in
          Double(side.warnings.reduce(0) { $0 + $1.givenBack })
        })
    }
    return metrics + [
      metric("backgrounds", title: "entries to the background", unit: .count) {
        Double($0.backgrounds)
      },
      metric("hibernations", title: "hibernations", unit: .count) { Double($0.hibernations) },
      metric("seconds", title: "recorded", unit: .seconds, \.seconds),
    ]
  }
}

/// The limit by which a number may grow from one version of a program to the next.
public enum GrowthLimit: Hashable, Sendable {
  case percent(Double)
  case bytes(Int64)

  /// Returns a sentence if a metric has grown by more than this limit.
  public func excess(of metric: RecordingComparison.Metric) -> String? {
    let limit: String
    switch self {
    case .percent(let maximum):
      // A number that grows from 0 exceeds every percentage.
      guard metric.difference > metric.a * maximum / 100 else { return nil }
      limit = "\(percentText(maximum))"
    case .bytes(let maximum):
      guard metric.difference > Double(maximum) else { return nil }
      limit = shortSizeText(maximum)
    }
    let grown = metric.percent.map { " (\(percentText($0)))" } ?? ""
    return "\(metric.title): grown by \(shortSizeText(Int64(metric.difference)))\(grown), "
      + "more than \(limit)"
  }
}

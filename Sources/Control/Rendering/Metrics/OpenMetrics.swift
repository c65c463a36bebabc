/// The form of a page of metrics.
public enum MetricsFormat: String, Hashable, Sendable, CaseIterable {
  /// OpenMetrics 1.0.
  case openMetrics = "openmetrics"
  /// The text format 0.0.4 of Prometheus, which node_exporter's textfile collector and `promtool` read. The series
  /// are the same.
  case prometheus

  /// For the header `Content-Type` of an answer over HTTP.
  public var contentType: String {
    switch self {
    case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
    case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
    }
  }
}

/// The daemon, the machine and all workers as metrics, from an answer to `status`.
///
/// - Parameter daemon: nil: no daemon answers, and that is all that is said.
public func renderOpenMetrics(
  daemon: DaemonReport?, workers: [WorkerReport], format: MetricsFormat = .openMetrics
) -> String {
  var page = MetricsPage(format)
  page.add(
    Metric(.gauge, "dormouse_up", help: "1 if the daemon answered, 0 if it did not."),
    daemon == nil ? 0 : 1)
  if let daemon {
    page.add(machine: daemon)
    page.add(daemon: daemon)
    page.add(workers: workers)
  }
  return page.finished
}

/// The name, type, unit and meaning of a metric.
struct Metric {
  enum Kind: String {
    case gauge, counter, histogram, summary, info
  }

  enum Unit: String {
    case bytes, seconds, ratio
  }

  var kind: Kind
  /// With the suffix that the samples of counters (`_total`) and of infos (`_info`) have.
  var name: String
  var unit: Unit?
  var help: String

  init(_ kind: Kind, _ name: String, unit: Unit? = nil, help: String) {
    self.kind = kind
    self.name = name
    self.unit = unit
    self.help = help
  }

  /// What OpenMetrics calls the metric family.
  private var family: String {
    switch kind {
    case .counter: name.removing(suffix: "_total")
    case .info: name.removing(suffix: "_info")
    case .gauge, .histogram, .summary: name
    }
  }

  func head(_ format: MetricsFormat) -> String {
    switch format {
    case .openMetrics:
      let unit = unit.map { "# UNIT \(family) \($0.rawValue)\n" } ?? ""
      return "# HELP \(family) \(escapedHelp(quotes: true))\n# TYPE \(family) \(kind.rawValue)\n"
        + unit
    case .prometheus:
      let type = kind == .info ? Kind.gauge : kind
      return "# HELP \(name) \(escapedHelp(quotes: false))\n# TYPE \(name) \(type.rawValue)\n"
    }
  }

  private func escapedHelp(quotes: Bool) -> String {
    help.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
      .replacing("\"", with: quotes ? "\\\"" : "\"")
  }
}

extension String {
  fileprivate func removing(suffix: String) -> String {
    hasSuffix(suffix) ? String(dropLast(suffix.count)) : self
  }
}

/// The labels of a sample, in their order.
struct Labels {
  private var pairs: [(name: String, value: String)]

  init(_ pairs: [(name: String, value: String)] = []) { self.pairs = pairs }

  func with(_ name: String, _ value: String) -> Labels { Labels(pairs + [(name, value)]) }

  /// `{worker="web"}`; empty without labels.
  var text: String {
    if pairs.isEmpty { return "" }
    let all = pairs.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }
    return "{\(all.joined(separator: ","))}"
  }

  /// A Swift text is valid UTF-8: bytes that were none are U+FFFD in it.
  private static func escaped(_ value: String) -> String {
    var result = ""
    for scalar in value.unicodeScalars {
      switch scalar {
      case "\\": result += "\\\\"
      case "\"": result += "\\\""
      case "\n": result += "\\n"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

/// A page of metrics that grows. A metric without samples leaves no trace.
struct MetricsPage {
  private let format: MetricsFormat
  private var text = ""

  init(_ format: MetricsFormat) { self.format = format }

  var finished: String { format == .openMetrics ? text + "# EOF\n" : text }

  mutating func add(_ metric: Metric, _ value: (any MetricValue)?) {
    add(metric, [(Labels(), value)])
  }

  /// One sample for each value that is there.
  mutating func add(_ metric: Metric, _ samples: [(labels: Labels, value: (any MetricValue)?)]) {
    let lines = samples.compactMap { sample in
      sample.value.map { "\(metric.name)\(sample.labels.text) \($0.metricText)\n" }
    }
    if lines.isEmpty { return }
    text += metric.head(format) + lines.joined()
  }

  /// The sum and the number of durations.
  mutating func add(
    summary metric: Metric, _ samples: [(labels: Labels, count: Int, sum: Double)]
  ) {
    if samples.isEmpty { return }
    text += metric.head(format)
    for (labels, count, sum) in samples {
      text += "\(metric.name)_count\(labels.text) \(count)\n"
      text += "\(metric.name)_sum\(labels.text) \(sum.metricText)\n"
    }
  }

  /// Durations by size.
  mutating func add(
    histogram metric: Metric, _ samples: [(labels: Labels, times: DaemonMeasurements.WakeTimes)]
  ) {
    if samples.isEmpty { return }
    text += metric.head(format)
    for (labels, times) in samples {
      var count = 0
      for (place, bound) in (times.bounds + [.infinity]).enumerated() {
        count += place < times.counts.count ? times.counts[place] : 0
        text += "\(metric.name)_bucket\(labels.with("le", bound.metricText).text) \(count)\n"
      }
      text += "\(metric.name)_count\(labels.text) \(count)\n"
      text += "\(metric.name)_sum\(labels.text) \(times.seconds.metricText)\n"
    }
  }
}

/// A number of a sample.
protocol MetricValue {
  var metricText: String { get }
}

extension Int: MetricValue {
  var metricText: String { "\(self)" }
}

extension Int64: MetricValue {
  var metricText: String { "\(self)" }
}

extension Bool: MetricValue {
  var metricText: String { self ? "1" : "0" }
}

extension Double: MetricValue {
  var metricText: String {
    if isNaN { return "NaN" }
    if isInfinite { return self < 0 ? "-Inf" : "+Inf" }
    return "\(self)"
  }
}

/// The text format of a page of metrics.
public enum MetricsFormat: String, Hashable, Sendable, CaseIterable {
  /// The format OpenMetrics 1.0.
  case openMetrics = "openmetrics"
  /// The text format 0.0.4 of Prometheus, which node_exporter's textfile collector and `promtool`
  /// read. It contains the same series.
  case prometheus

  /// The value of the header `Content-Type` in a response over HTTP.
  public var contentType: String {
    switch self {
    case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
    case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
    }
  }
}

/// The daemon, the machine and all workers as metrics, from a response to `status`.
///
/// - Parameter daemon: nil if no daemon responds. Then the page only contains that fact.
public func renderOpenMetrics(
  daemon: DaemonReport?, workers: [WorkerReport], format: MetricsFormat = .openMetrics
) -> String {
  var page = MetricsPage(format, workers)
  page.add("up", "1 if the daemon answered, 0 if it did not.", of: daemon == nil ? 0 : 1)
  if let daemon {
    page.addMachine(daemon)
    page.addDaemon(daemon)
    page.addWorkers()
  }
  return page.finished
}

/// The name, type, unit and meaning of a metric.
struct Metric {
  enum Kind: String {
    case gauge, counter, histogram, summary, info
  }

  let kind: Kind
  /// The name with the suffix that the samples of counters (`_total`) and infos (`_info`) have.
  let name: String
  let help: String

  /// - Parameter name: the name without `dormouse_`.
  init(_ name: String, _ help: String, as kind: Kind? = nil) {
    self.name = "dormouse_\(name)"
    self.kind =
      kind ?? (name.hasSuffix("_total") ? .counter : name.hasSuffix("_info") ? .info : .gauge)
    self.help = help
  }

  /// The unit, which is the end of the family's name. Bytes times seconds have none.
  private var unit: String? {
    let family = family
    return ["bytes", "seconds", "ratio"].first {
      family.hasSuffix("_\($0)") && !family.hasSuffix("_byte_seconds")
    }
  }

  /// The name of the metric family, as OpenMetrics calls it.
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
      let unit = unit.map { "# UNIT \(family) \($0)\n" } ?? ""
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

  /// The labels as text, such as `{worker="web"}`. It is empty without labels.
  var text: String {
    if pairs.isEmpty { return "" }
    let all = pairs.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }
    return "{\(all.joined(separator: ","))}"
  }

  /// A Swift string is valid UTF-8: bytes that were invalid are U+FFFD in it.
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

/// A page of metrics to which metrics are added. A metric without samples isn't added.
struct MetricsPage {
  private let format: MetricsFormat
  let workers: [LabelledWorker]
  private var text = ""

  init(_ format: MetricsFormat, _ workers: [WorkerReport]) {
    self.format = format
    self.workers = LabelledWorker.all(workers)
  }

  var finished: String { format == .openMetrics ? text + "# EOF\n" : text }

  mutating func add(_ name: String, _ help: String, of value: (any MetricValue)?) {
    add(name, help, of: [(Labels(), value)])
  }

  /// Adds a metric with one sample for each value that isn't nil.
  mutating func add(
    _ name: String, _ help: String, of samples: [(labels: Labels, value: (any MetricValue)?)]
  ) {
    let metric = Metric(name, help)
    let lines = samples.compactMap { sample in
      sample.value.map { "\(metric.name)\(sample.labels.text) \($0.metricText)\n" }
    }
    if lines.isEmpty { return }
    text += metric.head(format) + lines.joined()
  }

  /// Adds a metric with one sample for each value of a label.
  mutating func add(
    _ name: String, _ help: String, by label: String, of samples: [(String, (any MetricValue)?)]
  ) {
    add(name, help, of: samples.map { (Labels([(label, $0.0)]), $0.1) })
  }

  /// Adds a metric with one sample for each worker.
  mutating func each(
    _ name: String, _ help: String, _ value: (WorkerReport) -> (any MetricValue)?
  ) {
    add("worker_\(name)", help, of: workers.map { ($0.labels, value($0.worker)) })
  }

  /// Adds a metric with one sample for each worker and value of a label.
  mutating func each(
    _ name: String, _ help: String, by label: String,
    _ samples: (WorkerReport) -> [(String, (any MetricValue)?)]
  ) {
    add(
      "worker_\(name)", help,
      of: workers.flatMap { each in
        samples(each.worker).map { (each.labels.with(label, $0.0), $0.1) }
      }
    )
  }

  /// Adds the sum and the number of durations of each worker.
  mutating func summary(
    _ name: String, _ help: String, _ sample: (WorkerReport) -> (count: Int, sum: Double)?
  ) {
    let metric = Metric("worker_\(name)", help, as: .summary)
    let lines = workers.compactMap { each in
      sample(each.worker).map {
        "\(metric.name)_count\(each.labels.text) \($0.count)\n"
          + "\(metric.name)_sum\(each.labels.text) \($0.sum.metricText)\n"
      }
    }
    if !lines.isEmpty { text += metric.head(format) + lines.joined() }
  }

  /// Adds a histogram of durations.
  mutating func histogram(
    _ name: String, _ help: String,
    of samples: [(labels: Labels, times: DaemonMeasurements.WakeTimes)]
  ) {
    if samples.isEmpty { return }
    let metric = Metric(name, help, as: .histogram)
    text += metric.head(format)
    for (labels, times) in samples {
      var count = 0
      for (index, bound) in (times.bounds + [.infinity]).enumerated() {
        count += index < times.counts.count ? times.counts[index] : 0
        text += "\(metric.name)_bucket\(labels.with("le", bound.metricText).text) \(count)\n"
      }
      text += "\(metric.name)_count\(labels.text) \(count)\n"
      text += "\(metric.name)_sum\(labels.text) \(times.seconds.metricText)\n"
    }
  }
}

/// The number of a sample.
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

/// The numbers that describe a recording. Sizes are in bytes, times in seconds. Averages are over
/// time, not over samples.
public struct RecordingStatistics: Encodable, Hashable, Sendable {
  public var seconds: Double
  /// The number of samples.
  public var samples: Int
  public var peak: Int64
  /// When the footprint reached its peak first, in seconds since the beginning.
  public var peakAt: Double
  public var average: Int64
  /// The footprint was at most this for 95 % of the time.
  public var p95: Int64
  /// The footprint of the first sample.
  public var start: Int64
  /// The footprint of the last sample.
  public var last: Int64
  /// How long the footprint was above `limit`.
  public var secondsOver: Double
  /// The limit of `secondsOver`, in bytes.
  public var limit: Int64
  public var warnings: [WarningEffect]
  /// How often the worker was hibernated.
  public var hibernations: Int
  /// How often the worker entered the background.
  public var backgrounds: Int
  /// How often the worker was terminated or ended.
  public var terminations: Int

  enum CodingKeys: String, CodingKey {
    case seconds, samples, peak, peakAt, average, p95, start
    case last = "rest"
    case secondsOver, limit, warnings, hibernations, backgrounds, terminations
  }

  /// The largest footprint that is hibernated under the policy `ios-5`.
  public static let defaultLimit: Int64 = 16 << 20

  public init(_ recording: Recording, limit: Int64 = defaultLimit) {
    let samples = recording.samples
    self.limit = limit
    self.samples = samples.count
    seconds = recording.seconds
    start = samples.first?.footprint ?? 0
    last = samples.last?.footprint ?? 0
    // The first of several equal samples is the peak.
    let highest = samples.enumerated().max {
      ($0.element.footprint, -$0.offset) < ($1.element.footprint, -$1.offset)
    }
    peak = highest?.element.footprint ?? 0
    peakAt = highest?.element.at ?? 0
    let spans = Self.spans(of: recording)
    average = Self.average(spans) ?? last
    p95 = Self.percentile(0.95, spans) ?? last
    secondsOver = spans.reduce(0) { $0 + ($1.bytes > limit ? $1.seconds : 0) }
    warnings = WarningEffect.all(in: recording)
    hibernations = recording.count(entering: "hibernated")
    backgrounds = recording.count(entering: "background")
    terminations = recording.count(entering: "terminated")
  }

  private typealias Span = (bytes: Int64, seconds: Double)

  private static func spans(of recording: Recording) -> [Span] {
    var spans: [Span] = []
    recording.forEachSpan { spans.append(($0.footprint, $1)) }
    return spans
  }

  private static func average(_ spans: [Span]) -> Int64? {
    let seconds = spans.reduce(0) { $0 + $1.seconds }
    guard seconds > 0 else { return nil }
    return Int64((spans.reduce(0) { $0 + Double($1.bytes) * $1.seconds } / seconds).rounded())
  }

  private static func percentile(_ share: Double, _ spans: [Span]) -> Int64? {
    let needed = spans.reduce(0) { $0 + $1.seconds } * share
    guard needed > 0 else { return nil }
    var seen = 0.0
    let ordered = spans.sorted { $0.bytes < $1.bytes }
    for span in ordered {
      seen += span.seconds
      if seen >= needed { return span.bytes }
    }
    return ordered.last?.bytes
  }
}

extension Recording {
  fileprivate func count(entering state: String) -> Int {
    marks.count { $0.kind == .state && $0.to == state && $0.from != state }
  }
}

/// The summary of a recording, for JSON.
public struct RecordingSummary: Encodable, Sendable {
  /// The name of the file.
  public var name: String
  public var worker: String
  public var command: [String]
  public var time: String
  public var statistics: RecordingStatistics

  public init(
    _ recording: Recording, name: String, limit: Int64 = RecordingStatistics.defaultLimit
  ) {
    self.name = name
    worker = recording.header.name
    command = recording.header.command
    time = recording.header.time
    statistics = RecordingStatistics(recording, limit: limit)
  }
}

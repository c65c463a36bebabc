// The `--json` output of verbs for which the daemon has no report.

/// One sample of `top --json`.
public struct TopFrame: Codable, Hashable, Sendable {
  /// Wall clock, ISO 8601, UTC, with milliseconds.
  public var time: String
  public var daemon: DaemonReport?
  /// The workers, the largest footprint first.
  public var workers: [WorkerReport]

  public init(time: String, daemon: DaemonReport?, workers: [WorkerReport]) {
    self.time = time
    self.daemon = daemon
    self.workers = workers.sorted { ($1.footprint, $0.name) < ($0.footprint, $1.name) }
  }
}

/// One line of a worker's output (`logs --json`).
public struct LogLineReport: Codable, Hashable, Sendable {
  public var worker: String
  /// The line without its end. Bytes that aren't UTF-8 are replaced by U+FFFD.
  public var text: String
  /// The time at which it was read, ISO 8601, UTC, with milliseconds; nil if it was in the log
  /// before `logs` began.
  public var time: String?
  /// True if the line continues in the next object.
  public var isCut: Bool?

  public init(worker: String, text: String, time: String? = nil, isCut: Bool? = nil) {
    self.worker = worker
    self.text = text
    self.time = time
    self.isCut = isCut
  }
}

/// Cuts a worker's output into lines. A line that doesn't end is cut after `maxLine` bytes.
public struct LogLineCutter: Sendable {
  public static let maxLine = 64 << 10

  public struct Line: Hashable, Sendable {
    public var text: String
    public var isCut = false
  }

  private var pending: [UInt8] = []

  public init() {}

  /// Adds output. Returns the lines that have ended.
  public mutating func lines(in bytes: [UInt8]) -> [Line] {
    pending += bytes
    var result: [Line] = []
    var start = 0
    while let end = pending[start...].firstIndex(of: UInt8(ascii: "\n")) {
      result += Self.pieces(of: pending[start..<end])
      start = end + 1
    }
    while pending.count - start > Self.maxLine {
      result.append(Line(text: Self.text(pending[start..<start + Self.maxLine]), isCut: true))
      start += Self.maxLine
    }
    pending.removeFirst(start)
    return result
  }

  /// The remaining output, which has no line end.
  public mutating func finish() -> [Line] {
    defer { pending = [] }
    return pending.isEmpty ? [] : Self.pieces(of: pending[...])
  }

  private static func pieces(of line: ArraySlice<UInt8>) -> [Line] {
    var result: [Line] = []
    var line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
    while line.count > maxLine {
      result.append(Line(text: text(line.prefix(maxLine)), isCut: true))
      line = line.dropFirst(maxLine)
    }
    return result + [Line(text: text(line))]
  }

  private static func text(_ bytes: ArraySlice<UInt8>) -> String {
    String(decoding: bytes, as: UTF8.self)
  }
}

/// A problem in a file, with its position and how to fix it.
public struct DiagnosticReport: Codable, Hashable, Sendable {
  /// The code is `error` or `warning`.
  public var code: String
  public var text: String
  public var file: String
  /// The line of the problem. It counts from 1.
  public var line: Int?
  /// The column of the problem. It counts from 1.
  public var column: Int?
  /// How to fix it.
  public var suggestion: String?

  public init(
    code: String, text: String, file: String, line: Int?, column: Int?, suggestion: String?
  ) {
    self.code = code
    self.text = text
    self.file = file
    self.line = line
    self.column = column
    self.suggestion = suggestion
  }
}

/// The output of `policy check --json`.
public struct PolicyCheckReport: Codable, Hashable, Sendable {
  /// The code is `valid` or `invalid`.
  public var code: String
  public var errors: Int
  public var warnings: Int
  public var files: [File]
  public var diagnostics: [DiagnosticReport]

  public struct File: Codable, Hashable, Sendable {
    /// The file as it was given: a name or a path.
    public var file: String
    /// The code is `valid` or `invalid`.
    public var code: String
    /// The number of workers of a valid configuration.
    public var workers: Int?
    /// The policy of a valid configuration.
    public var policy: String?

    public init(file: String, code: String, workers: Int? = nil, policy: String? = nil) {
      self.file = file
      self.code = code
      self.workers = workers
      self.policy = policy
    }
  }

  public init(errors: Int, warnings: Int, files: [File], diagnostics: [DiagnosticReport]) {
    code = errors == 0 ? "valid" : "invalid"
    self.errors = errors
    self.warnings = warnings
    self.files = files
    self.diagnostics = diagnostics
  }
}

/// The output of `import --json`.
public struct ImportReport: Codable, Hashable, Sendable {
  /// The code is `imported` or `not_imported`.
  public var code: String
  /// The text of the configuration; nil if it was written to a file.
  public var configuration: String?
  /// The path of the file to which the configuration was written.
  public var output: String?
  public var workers: Int?
  /// The number of comments in the configuration about what couldn't be imported unchanged.
  public var notes: Int?
  /// The problems of the imported file, and of the resulting configuration.
  public var diagnostics: [DiagnosticReport]

  public init(
    code: String, configuration: String? = nil, output: String? = nil, workers: Int? = nil,
    notes: Int? = nil, diagnostics: [DiagnosticReport]
  ) {
    self.code = code
    self.configuration = configuration
    self.output = output
    self.workers = workers
    self.notes = notes
    self.diagnostics = diagnostics
  }
}

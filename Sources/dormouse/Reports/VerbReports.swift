import Control

// The `--json` output of verbs for which the daemon has no report.

/// One sample of `top --json`.
struct TopFrame: Codable, Hashable, Sendable {
  /// Wall clock, ISO 8601, UTC, with milliseconds.
  var time: String
  var daemon: DaemonReport?
  /// The workers, the largest footprint first.
  var workers: [WorkerReport]
}

/// One line of a worker's output (`logs --json`).
struct LogLineReport: Codable, Hashable, Sendable {
  var worker: String
  /// The line without its end. Bytes that aren't UTF-8 are replaced by U+FFFD.
  var text: String
  /// The time at which it was read, ISO 8601, UTC, with milliseconds; nil if it was in the log
  /// before `logs` began.
  var time: String?
  /// True if the line continues in the next object.
  var isCut: Bool?
}

/// A problem in a file, with its position and how to fix it.
struct DiagnosticReport: Codable, Hashable, Sendable {
  /// The code is `error` or `warning`.
  var code: String
  var text: String
  var file: String
  /// The line of the problem. It counts from 1.
  var line: Int?
  /// The column of the problem. It counts from 1.
  var column: Int?
  /// How to fix it.
  var suggestion: String?
}

/// The output of `policy check --json`.
struct PolicyCheckReport: Codable, Hashable, Sendable {
  /// The code is `valid` or `invalid`.
  var code: String
  var errors: Int
  var warnings: Int
  var files: [File]
  var diagnostics: [DiagnosticReport]

  struct File: Codable, Hashable, Sendable {
    /// The file as it was given: a name or a path.
    var file: String
    /// The code is `valid` or `invalid`.
    var code: String
    /// The number of workers of a valid configuration.
    var workers: Int?
    /// The policy of a valid configuration.
    var policy: String?
  }
}

/// The output of `import --json`.
struct ImportReport: Codable, Hashable, Sendable {
  /// The code is `imported` or `not_imported`.
  var code: String
  /// The text of the configuration; nil if it was written to a file.
  var configuration: String?
  /// The path of the file to which the configuration was written.
  var output: String?
  var workers: Int?
  /// The number of comments in the configuration about what couldn't be imported unchanged.
  var notes: Int?
  /// The problems of the imported file, and of the resulting configuration.
  var diagnostics: [DiagnosticReport]
}

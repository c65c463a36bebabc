/// The formats of trace files, which docs/simulation.md describes.
public enum TraceFormat: String, Sendable, CaseIterable {
  /// Dormouse's own format: a line for each worker and each use.
  case dormouse
  /// Azure Functions 2019: for each day a file of invocations per minute, one of durations, and one
  /// of memory.
  case azure2019 = "azure-2019"
  /// Azure Functions 2021: a line for each invocation.
  case azure2021 = "azure-2021"
}

/// The kind of a file, recognized by its first line.
enum TraceFileKind {
  case dormouse
  case invocations2019(minutes: Int)
  case durations2019
  case memory2019
  case invocations2021

  init(header row: CSVRow) throws(TraceError) {
    switch (try row.text(0), row.count) {
    case ("dormouse trace", 2...):
      guard try row.count(1) == 1 else { throw row.wrong(1, "version 1 of the format") }
      self = .dormouse
    case ("HashOwner", 5...) where try row.text(3) == "Trigger":
      self = .invocations2019(minutes: row.count - 4)
    case ("HashOwner", 14...) where try row.text(3) == "Average": self = .durations2019
    case ("HashOwner", 12...) where try row.text(2) == "SampleCount": self = .memory2019
    case ("app", 4...) where try row.text(1) == "func": self = .invocations2021
    case (let text, _) where text.hasPrefix(#"{"recording":"dormouse footprint"#):
      throw TraceError(
        file: row.file, line: row.line, column: 1,
        what:
          "this is a recorded footprint, not a trace of uses; `dormouse footprint show` draws it")
    default:
      throw row.wrong(
        0, "the header of a trace (dormouse trace, Azure Functions 2019 or 2021)")
    }
  }
}

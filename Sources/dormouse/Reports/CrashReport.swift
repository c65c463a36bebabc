import Control

/// The crashes of one worker with the same cause, described by the newest of them (`report`).
struct CrashReport: Codable, Hashable, Sendable {
  var worker: String
  /// The code is that of an end, or `watchdog` or `launch_failed`. The text describes the newest
  /// crash.
  var cause: ExitStatusReport
  var count: Int
  /// The time of the newest crash: wall clock, ISO 8601.
  var last: String
  /// The last lines of the output of the newest crash. They are empty if it wrote nothing, and nil
  /// if its output isn't in a log, or its log couldn't be read.
  var lastLines: [String]?
}

/// The crashes in the output of `dormouse report`: the newest crash for each cause, with the end of
/// its output.
func renderCrashes(
  _ crashes: [CrashReport], width: Int? = nil, color: Bool = false
) -> String {
  var lines = [Color.bold.paint("crashes by cause", if: color)]
  for crash in crashes {
    let often = crash.count == 1 ? "once" : "\(crash.count) times, last"
    let text =
      "\(escaped(crash.worker)): \(escaped(crash.cause.text)), \(often) on \(escaped(crash.last))"
    lines += indented(text, by: "  ", width)
    lines += outputLines(of: crash).flatMap { indented($0, by: "    ", width) }
  }
  return lines.joined(separator: "\n") + "\n"
}

private func outputLines(of crash: CrashReport) -> [String] {
  // Its program never ran, so it wrote nothing.
  if crash.cause.code == "launch_failed" { return [] }
  guard let lines = crash.lastLines else {
    return ["(no output: it isn't in a log, or the log couldn't be read)"]
  }
  return lines.isEmpty ? ["(it wrote nothing)"] : lines.map { "| \(escaped($0))" }
}

private func indented(_ text: String, by indent: String, _ width: Int?) -> [String] {
  let lines = wrapped(text, to: width.map { max($0 - indent.count - 2, 20) })
  return lines.enumerated().map { indent + ($0.offset == 0 ? "" : "  ") + $0.element }
}

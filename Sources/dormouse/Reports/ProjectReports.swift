import Control

/// One project, or the user's daemon without a project (`ls`). Sizes are in bytes.
struct ProjectReport: Codable, Hashable, Sendable {
  /// The project's name; nil for the user's own daemon.
  var name: String?
  /// Distinguishes projects of the same name.
  var id: String?
  var directory: String?
  var stateDirectory: String?
  var socket: String
  var isRunning = false
  /// The number of its workers; nil if its daemon doesn't run or doesn't answer.
  var workers: Int?
  /// The sum of the footprints of its workers; nil if its daemon doesn't answer.
  var footprint: Int64?
  /// The bytes that hibernation saves now in its workers; nil if its daemon doesn't answer.
  var saved: Int64?
}

/// The output of `ls --json`.
struct ProjectsReport: Codable, Hashable, Sendable {
  var projects: [ProjectReport]
}

/// The output of `dormouse ls`: a line for each project.
func renderProjects(
  _ projects: [ProjectReport], width: Int? = nil, color: Bool = false
) -> String {
  var table = Table(columns: [
    .init(title: "PROJECT", minWidth: 12), "STATE", .number("WORKERS"), .number("FOOTPRINT"),
    .number("SAVED"), "DIRECTORY",
  ])
  table.rows = projects.map { project in
    [
      .init(project.name.map(escaped) ?? "(none)"),
      project.isRunning ? .init("running", .green) : .init("stopped", .dim),
      .init(project.workers.map { "\($0)" } ?? "-"),
      .init(project.footprint.map(sizeText) ?? "-"), .init(project.saved.map(sizeText) ?? "-"),
      .init(project.directory.map(escaped) ?? "-"),
    ]
  }
  return table.lines(width: width, color: color, wrapsLast: true).joined(separator: "\n") + "\n"
}

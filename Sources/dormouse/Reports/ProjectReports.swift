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

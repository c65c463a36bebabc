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

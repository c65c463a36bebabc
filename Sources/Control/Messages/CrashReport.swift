/// The crashes of one worker with the same cause, described by the newest of them (`report`).
public struct CrashReport: Codable, Hashable, Sendable {
  public var worker: String
  /// The code is that of an end, or `watchdog` or `launch_failed`. The text describes the newest
  /// crash.
  public var cause: ExitStatusReport
  public var count: Int
  /// The time of the newest crash: wall clock, ISO 8601.
  public var last: String
  /// The last lines of the output of the newest crash. They are empty if it wrote nothing, and nil
  /// if its output isn't in a log, or its log couldn't be read.
  public var lastLines: [String]?

  public init(
    worker: String, cause: ExitStatusReport, count: Int, last: String, lastLines: [String]? = nil
  ) {
    self.worker = worker
    self.cause = cause
    self.count = count
    self.last = last
    self.lastLines = lastLines
  }
}

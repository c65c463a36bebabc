/// The crashes of one worker with the same cause, described by the newest of them (`report`).
public struct CrashReport: Codable, Hashable, Sendable {
  public var worker: String
  public var cause: Cause
  public var count: Int
  /// The time of the newest crash: wall clock, ISO 8601.
  public var last: String
  /// The last lines of the output of the newest crash. They are empty if it wrote nothing, and nil
  /// if its output isn't in a log, or its log couldn't be read.
  public var lastLines: [String]?

  public struct Cause: Codable, Hashable, Sendable {
    /// The code is `exited`, `signaled`, `out_of_memory`, `watchdog`, `launch_failed` or
    /// `end_unknown`.
    public var code: String
    /// The description of the newest crash.
    public var text: String
    /// The exit status, if it exited.
    public var status: Int32?
    /// The signal's number, if a signal ended it.
    public var signal: Int32?

    public init(code: String, text: String, status: Int32? = nil, signal: Int32? = nil) {
      self.code = code
      self.text = text
      self.status = status
      self.signal = signal
    }
  }

  public init(worker: String, cause: Cause, count: Int, last: String, lastLines: [String]? = nil) {
    self.worker = worker
    self.cause = cause
    self.count = count
    self.last = last
    self.lastLines = lastLines
  }
}

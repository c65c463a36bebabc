/// `report`: the crashes of one worker with the same cause, represented by the newest of them.
public struct CrashReport: Codable, Hashable, Sendable {
  public var worker: String
  public var cause: Cause
  public var count: Int
  /// The newest: wall clock, ISO 8601.
  public var last: String
  /// The last lines of the newest one's output. Empty: it wrote nothing; nil: its output isn't in a log, or its
  /// log couldn't be read.
  public var lastLines: [String]?

  public struct Cause: Codable, Hashable, Sendable {
    /// `exited`, `signaled`, `out_of_memory`, `watchdog`, `launch_failed` or `end_unknown`.
    public var code: String
    /// Of the newest one.
    public var text: String
    /// Where it exited; and where a signal ended it.
    public var status: Int32?
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

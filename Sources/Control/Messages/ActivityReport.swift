/// When a worker was last used, and how often it is (`explain WORKER`). Times are in seconds.
public struct ActivityReport: Codable, Hashable, Sendable {
  /// The last sign of use in this run; nil if there was none.
  public var last: CodedText?
  public var lastSecondsAgo: Double?
  /// The time since the launch. It is set if the run began after the counting of uses.
  public var launchedSecondsAgo: Double?
  /// The number of uses since the daemon began to watch the worker. Signs of use within 5 s are one
  /// use.
  public var uses: Int
  /// The time over which `uses` were counted.
  public var overSeconds: Double
  /// The rate of the last 64 uses; nil if too little time has passed.
  public var perHour: Double?
  /// The median of the times between two uses.
  public var medianQuietSeconds: Double?
  /// A suggestion that would change how it sleeps.
  public var advice: Advice?

  public struct Advice: Codable, Hashable, Sendable {
    public var code: String
    /// The key of the policy to change.
    public var key: String
    public var text: String

    public init(code: String, key: String, text: String) {
      self.code = code
      self.key = key
      self.text = text
    }
  }

  public init(uses: Int, overSeconds: Double) {
    self.uses = uses
    self.overSeconds = overSeconds
  }
}

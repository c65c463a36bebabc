/// `explain WORKER`: when the worker was last used, and how often it is. Times in seconds.
public struct ActivityReport: Codable, Hashable, Sendable {
  /// The last sign of use in this run; nil: there was none.
  public var last: CodedText?
  public var lastSecondsAgo: Double?
  /// The run is younger than the count.
  public var launchedSecondsAgo: Double?
  /// Uses since the daemon began to watch the worker. Signs of use within 5 s are one use.
  public var uses: Int
  public var overSeconds: Double
  /// Of the last 64 uses; nil: too little time has passed.
  public var perHour: Double?
  /// Half of the times between two uses are at most this long.
  public var medianQuietSeconds: Double?
  /// What would change how it sleeps.
  public var advice: Advice?

  public struct Advice: Codable, Hashable, Sendable {
    public var code: String
    /// The key of the policy.
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

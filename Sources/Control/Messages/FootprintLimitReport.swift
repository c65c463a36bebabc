/// A worker's `limits.footprint`, and what came of them. Sizes in bytes.
public struct FootprintLimitReport: Codable, Hashable, Sendable {
  public var warn: Int64?
  public var hibernate: Int64?
  public var restart: Int64?
  /// How long the footprint must be over a limit.
  public var sustainedSeconds: Double
  /// Restarts for its footprint since the daemon started.
  public var restarts: Int
  public var lastRestartSecondsAgo: Double?
  /// Why it was restarted the last time.
  public var lastRestart: CodedText?

  public init(sustainedSeconds: Double, restarts: Int) {
    self.sustainedSeconds = sustainedSeconds
    self.restarts = restarts
  }
}

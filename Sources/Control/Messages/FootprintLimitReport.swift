/// A worker's `limits.footprint`, and the restarts because of them. Sizes are in bytes.
public struct FootprintLimitReport: Codable, Hashable, Sendable {
  public var warn: Int64?
  public var hibernate: Int64?
  public var restart: Int64?
  /// The time for which the footprint must be over a limit.
  public var sustainedSeconds: Double
  /// The number of restarts because of its footprint since the daemon started.
  public var restarts: Int
  public var lastRestartSecondsAgo: Double?
  /// The reason of the last such restart.
  public var lastRestart: CodedText?

  public init(sustainedSeconds: Double, restarts: Int) {
    self.sustainedSeconds = sustainedSeconds
    self.restarts = restarts
  }
}

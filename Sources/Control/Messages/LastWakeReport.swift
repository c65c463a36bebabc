/// What woke a worker the last time.
public struct LastWakeReport: Codable, Hashable, Sendable {
  /// The codes are those of `reason`.
  public var code: String
  /// `woken by data from 127.0.0.1:51234`.
  public var text: String
  public var secondsAgo: Double

  public init(code: String, text: String, secondsAgo: Double) {
    self.code = code
    self.text = text
    self.secondsAgo = secondsAgo
  }
}

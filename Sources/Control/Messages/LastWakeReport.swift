/// The reason for a worker's last wake.
public struct LastWakeReport: Codable, Hashable, Sendable {
  /// The code is one of those of `reason`.
  public var code: String
  /// The reason as text, such as `woken by data from 127.0.0.1:51234`.
  public var text: String
  public var secondsAgo: Double

  public init(code: String, text: String, secondsAgo: Double) {
    self.code = code
    self.text = text
    self.secondsAgo = secondsAgo
  }
}

/// Evidence that a worker may leak memory: its footprint was larger at each suspension. Sizes are
/// in bytes.
public struct LeakReport: Codable, Hashable, Sendable {
  public var code = "leak_suspected"
  /// A summary, as a clause whose subject is the footprint.
  public var text: String
  /// The footprint at the first of the suspensions.
  public var footprintBefore: Int64
  /// The footprint at the last of the suspensions.
  public var footprint: Int64
  public var suspensions: Int
  /// The time from the first of the suspensions to the last.
  public var seconds: Double
  public var bytesPerSuspension: Int64
  /// The growth per day; absent if the time is too short for an estimate.
  public var bytesPerDay: Int64?
  /// The footprint that the last memory warning of this run left.
  public var leftByWarning: Int64?

  public init(
    text: String, footprintBefore: Int64, footprint: Int64, suspensions: Int, seconds: Double,
    bytesPerSuspension: Int64
  ) {
    self.text = text
    self.footprintBefore = footprintBefore
    self.footprint = footprint
    self.suspensions = suspensions
    self.seconds = seconds
    self.bytesPerSuspension = bytesPerSuspension
  }
}

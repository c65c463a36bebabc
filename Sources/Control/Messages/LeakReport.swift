/// Evidence that a worker may lose memory: its footprint was larger at each suspension. Sizes in bytes.
public struct LeakReport: Codable, Hashable, Sendable {
  public var code = "leak_suspected"
  /// All of it in a clause whose subject is the footprint.
  public var text: String
  /// At the first and at the last of the suspensions.
  public var footprintBefore: Int64
  public var footprint: Int64
  public var suspensions: Int
  /// From the first of the suspensions to the last.
  public var seconds: Double
  public var bytesPerSuspension: Int64
  /// Absent: the time is too short to say.
  public var bytesPerDay: Int64?
  /// What the last memory warning of this run left.
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

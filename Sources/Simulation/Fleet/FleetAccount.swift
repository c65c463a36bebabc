/// The memory and the costs of one worker of a fleet.
public struct FleetAccount: Sendable, Hashable {
  /// The integral over time of the memory that it used.
  public var byteSeconds = 0.0
  /// The integral over time of the memory that hibernation saved.
  public var savedByteSeconds = 0.0
  /// The integral over time of the memory that was out of RAM after trims.
  public var trimmedByteSeconds = 0.0
  /// The number of trims.
  public var trims = 0
  /// The number of resumes, for clients and for its own timers.
  public var wakes = 0
  /// The time in seconds that its clients waited for resumes, launches and trimmed memory.
  public var waitSeconds = 0.0
  /// The size of all images that were written for it.
  public var writtenBytes: Int64 = 0

  public init() {}
}

import Policy

/// One burst of terminations for lack of memory. It is reported when the burst is over.
public struct JetsamReport: Codable, Hashable, Sendable {
  public var at: Instant
  /// The pressure level when the burst began.
  public var level: PressureLevel
  /// What had been measured when the burst began, as text.
  public var why: String
  /// The memory that the policy distributes: that of the machine, or of the simulated device.
  public var budget: ByteCount
  /// The available memory when the burst began.
  public var availableBefore: ByteCount
  /// The available memory when the burst ended.
  public var availableAfter: ByteCount
  /// The live worker with the largest footprint when the burst began.
  public var largest: WorkerID?
  /// All live workers as they were when the burst began, in the order of termination.
  public var entries: [Entry]

  /// One worker as it was when the burst began.
  public struct Entry: Codable, Hashable, Sendable {
    public var worker: WorkerID
    public var state: WorkerState
    /// The band, with the importance and the bonus for early wakes.
    public var band: Int
    public var footprint: ByteCount
    public var peakFootprint: ByteCount
    /// The time since the worker was last used; zero in the foreground.
    public var sinceUse: Duration
    /// The time since the worker was launched or adopted.
    public var age: Duration
    /// Why the worker was chosen. `nil`: it wasn't terminated.
    public var victimBecause: String?
    /// How much memory the termination freed.
    public var gaveBack: ByteCount?
    /// What protected the worker from termination. `nil`: nothing.
    public var protection: Protection?
  }
}

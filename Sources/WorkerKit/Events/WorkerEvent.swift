/// An event that the daemon sends to a worker.
public enum WorkerEvent: Sendable, Hashable {
  /// The worker isn't in use any more. Free what can be made again, save what can't; suspension follows.
  case didEnterBackground
  /// The worker is in use.
  case didEnterForeground
  /// Free what can be made again, now.
  case didReceiveMemoryWarning(MemoryWarning)
  /// The worker is about to be suspended, in a moment.
  case willSuspend
  /// It runs again.
  case didResume(Resumption)
  /// The worker is about to be ended: SIGTERM follows the answer. Save what must be saved.
  case willTerminate(reason: String)
  /// The machine's memory has become scarcer, or less scarce.
  case pressureChanged(PressureLevel)
}

/// A request to free memory.
public struct MemoryWarning: Sendable, Hashable {
  public var level: PressureLevel
  /// The worker's footprint in bytes, as the daemon has measured it.
  public var footprintBytes: Int64

  public init(level: PressureLevel, footprintBytes: Int64) {
    self.level = level
    self.footprintBytes = footprintBytes
  }
}

/// The end of a sleep.
public struct Resumption: Sendable, Hashable {
  /// How long the worker didn't run. Its own clocks may have stood still, and its data may be old.
  public var asleep: Duration
  /// The cause of the resume, such as a request, a connection or a timer; in the daemon's words.
  public var cause: String

  public init(asleep: Duration, cause: String) {
    self.asleep = asleep
    self.cause = cause
  }
}

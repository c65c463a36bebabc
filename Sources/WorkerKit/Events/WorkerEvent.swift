/// An event that the daemon sends to a worker.
public enum WorkerEvent: Sendable, Hashable {
  /// The worker isn't in use any more. Free what can be made again, and save what can't; suspension
  /// follows.
  case didEnterBackground
  /// The worker is in use.
  case didEnterForeground
  /// The machine runs short of memory. Free what can be made again, now.
  case didReceiveMemoryWarning(MemoryWarning)
  /// The worker is about to be suspended, in a moment.
  case willSuspend
  /// The worker runs again after a sleep.
  case didResume(Resumption)
  /// The worker is about to be terminated: SIGTERM follows the answer. Save what must be saved.
  /// `reason` is a text of the daemon, for people.
  case willTerminate(reason: String)
  /// The machine's pressure level has changed.
  case pressureChanged(PressureLevel)
}

/// A request to free memory.
public struct MemoryWarning: Sendable, Hashable {
  /// The machine's pressure level.
  public var level: PressureLevel
  /// The worker's footprint in bytes, as the daemon has measured it.
  public var footprintBytes: Int64

  /// Creates a warning, for tests.
  public init(level: PressureLevel, footprintBytes: Int64) {
    self.level = level
    self.footprintBytes = footprintBytes
  }
}

/// The end of a worker's sleep.
public struct Resumption: Sendable, Hashable {
  /// How long the worker didn't run. Some of its clocks may have stood still meanwhile, and its
  /// data may be old.
  public var asleep: Duration
  /// The cause of the resume, such as a request, a connection or a timer: a text of the daemon, for
  /// people.
  public var cause: String

  /// Creates a resumption, for tests.
  public init(asleep: Duration, cause: String) {
    self.asleep = asleep
    self.cause = cause
  }
}

import Policy

/// A worker's name. It is unique within a daemon, and people use it on the command line.
public struct WorkerID: Codable, Hashable, Comparable, Sendable, CustomStringConvertible {
  public let name: String
  public init(_ name: String) { self.name = name }
  public static func < (left: WorkerID, right: WorkerID) -> Bool { left.name < right.name }
  public var description: String { name }
}

/// A worker's state. `suspending`, `hibernating`, `resuming` and `terminating` last from the
/// directive to its outcome.
public enum WorkerState: String, Codable, Hashable, Sendable, CaseIterable {
  case launching, foreground, background, suspending, suspended, hibernating, hibernated
  case resuming, terminating, terminated

  /// Whether its processes exist.
  public var isAlive: Bool { self != .terminated }
  /// Whether it gets processor time.
  public var runs: Bool {
    switch self {
    case .launching, .foreground, .background: true
    default: false
    }
  }
  /// Whether it is suspended or hibernated.
  public var sleeps: Bool { self == .suspended || self == .hibernated }
  /// Whether it waits for the outcome of an operation that suspends, hibernates or resumes it.
  public var isTransit: Bool { self == .suspending || self == .hibernating || self == .resuming }
  /// Whether it is alive and no operation is under way.
  public var isStable: Bool { self == .foreground || self == .background || sleeps }
}

/// What the engine must know about a worker before it runs.
public struct WorkerProfile: Codable, Hashable, Sendable {
  /// The policy for this worker, with its own overrides applied.
  @SharedPolicy public var policy: LifecyclePolicy
  /// 0–100. It raises the worker within the band of its state. Default 0.
  public var importance: Int
  /// Whether it can be asked to shed memory: it has a channel for that.
  public var canShed: Bool
  /// Whether its channel carries answers. Only then `watchdog.answer` applies to it.
  public var canAnswer: Bool
  /// Whether it announces its readiness. Otherwise it counts as ready when it has been launched.
  public var announcesReadiness: Bool
  /// Whether it may be terminated for lack of memory. False for one that another program
  /// supervises. Default true.
  public var mayBeTerminated = true
  /// The engine that decides about the worker and reports its state (`Event.moved`), as a phrase
  /// that follows "by". This engine only hibernates or terminates the worker for lack of memory.
  /// `nil`: this engine decides everything.
  public var leader: String?
  /// The rule of `adopt:` by which the worker was adopted. `nil`: none.
  public var rule: String?
  /// The limits in `limits.footprint`. `nil`: none, or a journal of an earlier version.
  public var footprintLimits: FootprintLimits?
  /// The workers that are woken with this one if they sleep. Names of workers that don't exist are
  /// ignored.
  public var wakeWith: [WorkerID] {
    get { wokenWithIt ?? [] }
    set { wokenWithIt = newValue.isEmpty ? nil : newValue }
  }
  /// Never empty: `nil` stands for none, because journals of earlier versions lack it.
  private var wokenWithIt: [WorkerID]?

  public init(
    policy: LifecyclePolicy, importance: Int = 0, canShed: Bool = false,
    canAnswer: Bool = false, announcesReadiness: Bool = false
  ) {
    self.policy = policy
    self.importance = importance
    self.canShed = canShed
    self.canAnswer = canAnswer
    self.announcesReadiness = announcesReadiness
  }
}

/// How a worker's root process ended.
public enum ExitStatus: Codable, Hashable, Sendable {
  /// The exit code.
  case exited(Int32)
  /// The number of the signal that ended it.
  case signaled(Int32)
  /// The kernel ended it by SIGKILL because its cgroup's limit was reached, or the machine had no
  /// memory left.
  case outOfMemory
  /// The kernel doesn't report the status: the process wasn't a child of this daemon, but of an
  /// earlier one.
  case unknown
}

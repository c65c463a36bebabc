import Policy

/// A worker's name: how people refer to it, unique within a daemon.
public struct WorkerID: Codable, Hashable, Comparable, Sendable, CustomStringConvertible {
  public let name: String
  public init(_ name: String) { self.name = name }
  public static func < (left: WorkerID, right: WorkerID) -> Bool { left.name < right.name }
  public var description: String { name }
}

/// A worker's state. `suspending`, `hibernating`, `resuming` and `terminating` last from the directive
/// to its outcome.
public enum WorkerState: String, Codable, Hashable, Sendable, CaseIterable {
  case launching, foreground, background, suspending, suspended, hibernating, hibernated
  case resuming, terminating, terminated

  /// Its processes exist.
  public var isAlive: Bool { self != .terminated }
  /// It gets processor time.
  public var runs: Bool {
    switch self {
    case .launching, .foreground, .background: true
    default: false
    }
  }
}

/// What the engine must know of a worker before it runs.
public struct WorkerProfile: Codable, Hashable, Sendable {
  /// The policy in force for this worker, its own overrides applied.
  @SharedPolicy public var policy: LifecyclePolicy
  /// 0–100; raises the worker within the band of its state. Default 0.
  public var importance: Int
  /// It has a channel on which it can be asked to shed memory.
  public var canShed: Bool
  /// Its channel carries answers, so that `watchdog.answer` holds for it.
  public var canAnswer: Bool
  /// The worker announces its readiness; otherwise it counts as ready when it has been launched.
  public var announcesReadiness: Bool
  /// The worker may be terminated for memory. False for one that another program supervises. Default
  /// true.
  public var mayBeTerminated = true
  /// The engine that decides on the worker's life and reports its state (`Event.moved`), as a phrase to
  /// follow "by". Here the worker is only hibernated or terminated for memory. `nil`: this engine
  /// decides.
  public var leader: String?
  /// The rule of `adopt:` by which the worker was adopted. `nil`: none.
  public var rule: String?
  /// `limits.footprint`; `nil`: none, or a journal of an earlier version.
  public var footprintLimits: FootprintLimits?
  /// The workers that are woken with this one, if they sleep. Names that no worker has are ignored.
  public var wakeWith: [WorkerID] {
    get { wokenWithIt ?? [] }
    set { wokenWithIt = newValue.isEmpty ? nil : newValue }
  }
  /// `nil` and not empty: journals of earlier versions lack it.
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
  case exited(Int32)
  case signaled(Int32)
  /// The kernel ended it (SIGKILL) because its cgroup's limit was reached, or the machine had no memory
  /// left.
  case outOfMemory
  /// The process wasn't a child of this daemon (adopted from an earlier one), so the kernel doesn't
  /// report it.
  case unknown
}

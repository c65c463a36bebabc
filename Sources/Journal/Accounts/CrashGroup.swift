import Lifecycle

/// The cause of the unexpected end of a run. Crashes with the same cause are counted together.
public enum CrashCause: Codable, Hashable, Sendable, Comparable {
  case signal(Int32)
  case status(Int32)
  /// A deadline of the life cycle was missed, or a probe failed too often.
  case deadline
  /// The kernel's OOM killer.
  case kernel
  /// The program couldn't be started.
  case launch
  /// The kernel didn't report the cause, because the process wasn't a child of this daemon.
  case unknown

  /// Returns `nil` if an end with this cause is no crash.
  public init?(_ cause: Cause) {
    switch cause {
    case .watchdog: self = .deadline
    case .exited(.exited(0)): return nil
    case .exited(.exited(let status)): self = .status(status)
    case .exited(.signaled(let signal)): self = .signal(signal)
    case .exited(.outOfMemory): self = .kernel
    case .exited(.unknown): self = .unknown
    default: return nil
    }
  }

  /// The kind of the cause, for JSON, without its number.
  public var code: String {
    switch self {
    case .signal: "signaled"
    case .status: "exited"
    case .deadline: "watchdog"
    case .kernel: "out_of_memory"
    case .launch: "launch_failed"
    case .unknown: "end_unknown"
    }
  }
}

/// The crashes of one worker with the same cause. The newest of them represents the group.
public struct CrashGroup: Codable, Hashable, Sendable {
  public var cause: CrashCause
  public var count = 1
  /// When the newest crash was, in nanoseconds since 1970.
  public var at: Int64
  /// The newest crash's reason in words.
  public var reason: String
  /// The last lines of output in the newest crash's run. `nil`: the output isn't in a log, or the
  /// log couldn't be read. Empty: the run wrote nothing.
  public var lines: [String]?

  enum CodingKeys: String, CodingKey {
    case cause, count, at, lines
    case reason = "why"
  }

  fileprivate mutating func add(_ other: CrashGroup) {
    let sum = count + other.count
    if other.at >= at { self = other }
    count = sum
  }
}

/// The crashes of one worker by cause.
public struct CrashGroups: Codable, Hashable, Sendable {
  /// The groups, one for each cause.
  public private(set) var groups: [CrashGroup] = []

  /// The maximum number of causes. A program may end with any status; the limit keeps a day's
  /// record small.
  static let limit = 16

  public init() {}

  /// Adds a group. If there are too many causes, the group whose newest crash is the oldest is
  /// dropped.
  public mutating func add(_ group: CrashGroup) {
    if let index = groups.firstIndex(where: { $0.cause == group.cause }) {
      groups[index].add(group)
    } else {
      groups.append(group)
      groups.sort { $0.cause < $1.cause }
    }
    guard groups.count > Self.limit,
      let oldest = groups.indices.min(by: { groups[$0].at < groups[$1].at })
    else { return }
    groups.remove(at: oldest)
  }

  public static func + (left: CrashGroups, right: CrashGroups) -> CrashGroups {
    var sum = left
    for group in right.groups { sum.add(group) }
    return sum
  }
}

/// Groups the crashes of all workers of an engine by cause, from the engine's events and
/// directives.
public struct CrashLedger: Sendable {
  /// The crashes since the beginning or the last `close`, by worker.
  public private(set) var crashes: [WorkerID: CrashGroups] = [:]
  private var lines: [WorkerID: [String]] = [:]

  public init() {}

  /// Keeps the last lines of a run whose end is recorded next. nil: the lines aren't known.
  public mutating func keep(_ last: [String]?, of worker: WorkerID) { lines[worker] = last }

  /// Counts the crash if the event is one.
  ///
  /// - Parameter wall: is called only for a crash.
  public mutating func record(
    _ event: Event, directives: [Directive], at wall: () -> WallTime
  ) {
    if case .launchFailed(let worker, let reason) = event {
      add(
        CrashGroup(cause: .launch, at: wall().nanoseconds, reason: reason, lines: nil), of: worker)
    }
    for case .transition(let transition) in directives where transition.to == .terminated {
      let last = lines.removeValue(forKey: transition.worker)
      guard let cause = CrashCause(transition.cause) else { continue }
      add(
        CrashGroup(
          cause: cause, at: wall().nanoseconds, reason: transition.cause.sentence, lines: last),
        of: transition.worker)
    }
    // The end was no transition: the lines that were kept belong to no later run.
    if case .exited(let worker, _) = event { lines[worker] = nil }
  }

  private mutating func add(_ group: CrashGroup, of worker: WorkerID) {
    crashes[worker, default: CrashGroups()].add(group)
  }

  /// Returns the crashes until now, and starts again with none.
  public mutating func close() -> [WorkerID: CrashGroups] {
    defer { crashes = [:] }
    return crashes
  }
}

import Lifecycle
import Policy

/// What ended a run that wasn't meant to end: crashes with the same cause are counted together.
public enum CrashCause: Codable, Hashable, Sendable, Comparable {
  case signal(Int32)
  case status(Int32)
  /// A deadline of the life cycle was missed, or a probe failed too often.
  case deadline
  /// The kernel's OOM killer.
  case kernel
  /// The program couldn't be started.
  case launch
  /// The kernel doesn't report how it ended, because it wasn't a child of this daemon.
  case unknown

  /// `nil`: an end with this cause is no crash.
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

  /// For programs, without the number.
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

/// The crashes of one worker with the same cause, represented by the newest of them.
public struct CrashGroup: Codable, Hashable, Sendable {
  public var cause: CrashCause
  public var count: Int
  /// The newest one: when (nanoseconds since 1970), why in words, and the last lines of its run's output.
  public var at: Int64
  public var why: String
  /// `nil`: its output isn't in a log, or its log couldn't be read. Empty: it wrote nothing.
  public var lines: [String]?

  public init(cause: CrashCause, at: Int64, why: String, lines: [String]?, count: Int = 1) {
    self.cause = cause
    self.count = count
    self.at = at
    self.why = why
    self.lines = lines
  }

  fileprivate mutating func add(_ other: CrashGroup) {
    let sum = count + other.count
    if other.at >= at { self = other }
    count = sum
  }
}

/// The crashes of one worker by cause.
public struct CrashGroups: Codable, Hashable, Sendable {
  /// By cause.
  public private(set) var groups: [CrashGroup] = []

  /// A program may end with any status: a day's record stays small.
  static let limit = 16

  public init() {}

  /// Where there are too many causes, the one whose newest crash is the oldest is dropped.
  public mutating func add(_ group: CrashGroup) {
    if let place = groups.firstIndex(where: { $0.cause == group.cause }) {
      groups[place].add(group)
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

/// Groups the crashes of all workers of an engine, from its events and directives.
public struct CrashLedger: Sendable {
  public private(set) var crashes: [WorkerID: CrashGroups] = [:]
  private var lines: [WorkerID: [String]] = [:]

  public init() {}

  /// The last lines of a run whose end is recorded next; nil: they aren't known.
  public mutating func keep(_ last: [String]?, of worker: WorkerID) { lines[worker] = last }

  /// - Parameter wall: read only for a crash.
  public mutating func record(
    _ event: Event, directives: [Directive], at wall: () -> WallTime
  ) {
    if case .launchFailed(let worker, let why) = event {
      add(CrashGroup(cause: .launch, at: wall().nanoseconds, why: why, lines: nil), of: worker)
    }
    for case .transition(let transition) in directives where transition.to == .terminated {
      let last = lines.removeValue(forKey: transition.worker)
      guard let cause = CrashCause(transition.cause) else { continue }
      add(
        CrashGroup(
          cause: cause, at: wall().nanoseconds, why: transition.cause.sentence, lines: last),
        of: transition.worker)
    }
    // Its end was no transition: what was kept belongs to no later run.
    if case .exited(let worker, _) = event { lines[worker] = nil }
  }

  private mutating func add(_ group: CrashGroup, of worker: WorkerID) {
    crashes[worker, default: CrashGroups()].add(group)
  }

  /// Returns the crashes until now, and begins new ones.
  public mutating func close() -> [WorkerID: CrashGroups] {
    defer { crashes = [:] }
    return crashes
  }
}

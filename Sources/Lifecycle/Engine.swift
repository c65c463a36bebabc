import Policy

/// The engine: events and the time in, directives out.
public struct Engine: Sendable {
  /// Machine-wide rules: pressure, ladder, termination order, foreground.
  public private(set) var policy: LifecyclePolicy
  public init(policy: LifecyclePolicy) { self.policy = policy }

  public mutating func handle(_ event: Event, at now: Instant) -> [Directive] { [] }

  /// When `Event.deadline` must be delivered at the latest.
  public var nextDeadline: Instant? { nil }
  public var pressure: PressureLevel { .normal }
  public func snapshot(of worker: WorkerID) -> WorkerSnapshot? { nil }
  public func snapshots() -> [WorkerSnapshot] { [] }
  public var budget: ByteCount { .zero }
  public var available: ByteCount { .zero }
}

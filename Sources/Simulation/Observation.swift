import Lifecycle
import Policy

/// An event that a simulated machine has sent to its engine, and its result. A journal records the
/// same of a real machine.
public struct Observation: Sendable {
  public var event: Event
  public var at: Instant
  public var directives: [Directive]
  /// The engine before the event.
  public var before: Engine
  /// The engine after the event.
  public var after: Engine
}

import Lifecycle
import Policy

/// An event that a simulated machine has sent to its engine, and its result: what a journal records of
/// a real one.
public struct Observation: Sendable {
  public var event: Event
  public var at: Instant
  public var directives: [Directive]
  /// The engine before the event and after it.
  public var before: Engine
  public var after: Engine
}

import Lifecycle
import Policy

/// Something that a simulated machine has told its engine, and what came of it: what a journal
/// records of a real one.
public struct Observation: Sendable {
  public var event: Event
  public var at: Instant
  public var directives: [Directive]
  /// Before it and after it.
  public var before: Engine
  public var after: Engine
}

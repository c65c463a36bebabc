/// An invariant that was violated, with what is needed to reproduce it.
public struct SimulationFailure: Error, CustomStringConvertible {
  public var seed: UInt64
  /// The number of the event at which the invariant was violated.
  public var event: Int
  public var what: String
  /// The last events, and the engine's directives for them.
  public var history: [String]

  public var description: String {
    """
    seed \(seed), event \(event): \(what)
    replay: dormouse simulate --check --seed \(seed)
    or: DORMOUSE_SEED=\(seed) swift test --filter SeedTests
    \(history.joined(separator: "\n"))
    """
  }
}

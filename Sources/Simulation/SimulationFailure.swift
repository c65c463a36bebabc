/// An invariant that didn't hold, with what is needed to see it again.
public struct SimulationFailure: Error, CustomStringConvertible {
  public var seed: UInt64
  public var event: Int
  public var what: String
  /// The last events and what the engine made of them.
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

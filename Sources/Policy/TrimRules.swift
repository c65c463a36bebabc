/// `trim:`. When memory that a running worker doesn't use is moved out of RAM while it runs.
public struct TrimRules: Codable, Hashable, Sendable {
  /// How a worker's memory is moved out of RAM.
  public enum Mechanism: String, Codable, Hashable, Sendable, CaseIterable {
    /// Swap where it is on, and userfaultfd elsewhere.
    case auto
    /// The memory is in a compressed image, and the daemon puts back what the worker touches.
    case userfaultfd
    /// The kernel's swap.
    case swap
    /// The worker is never trimmed, also not on request.
    case off
  }

  /// The time that a worker runs, since its launch or its last wake, until its first trim. `nil`
  /// (`never`): the policy trims no worker.
  public var after: Duration?
  /// The shortest time between two trims of a worker.
  public var every: Duration = .seconds(600)
  /// The smallest amount of memory for which a worker is trimmed.
  public var minGain: ByteCount = .megabytes(8)
  public var mechanism: Mechanism = .auto
}

extension KeyedDecodingContainer {
  /// Decodes the rules of a policy. Journals and records of earlier versions lack them, and get the
  /// defaults.
  func decode(_ type: TrimRules.Type, forKey key: Key) throws -> TrimRules {
    try decodeIfPresent(type, forKey: key) ?? TrimRules()
  }
}

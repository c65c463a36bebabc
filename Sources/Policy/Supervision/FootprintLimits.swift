/// `limits.footprint:`. What happens to a worker because of its measured footprint. The engine
/// enforces the limits, so they need no memory controller.
public struct FootprintLimits: Codable, Hashable, Sendable {
  /// Over this footprint the worker is asked to free memory. `nil`: it isn't.
  public var warn: ByteCount?
  /// Over this footprint the worker is hibernated as soon as it isn't in use. `nil`: it isn't.
  public var hibernate: ByteCount?
  /// Over this footprint the worker is terminated gracefully and started again. `nil`: it isn't.
  public var restart: ByteCount?
  /// How long the footprint must be over a limit.
  public var sustainedFor: Duration

  /// The default of `sustainedFor`.
  public static let defaultSustainedFor = Duration.seconds(30)

  public init(
    warn: ByteCount? = nil, hibernate: ByteCount? = nil, restart: ByteCount? = nil,
    sustainedFor: Duration = Self.defaultSustainedFor
  ) {
    self.warn = warn
    self.hibernate = hibernate
    self.restart = restart
    self.sustainedFor = sustainedFor
  }

  /// The limits, in the order in which a growing worker reaches them.
  public enum Step: String, Codable, Hashable, Sendable, CaseIterable {
    case warn, hibernate, restart

    /// The key of the limit, such as `limits.footprint.warn`.
    public var path: String { "limits.footprint.\(rawValue)" }
  }

  /// The footprint of a limit. `nil`: the limit isn't set.
  public subscript(step: Step) -> ByteCount? {
    switch step {
    case .warn: warn
    case .hibernate: hibernate
    case .restart: restart
    }
  }

  public var isEmpty: Bool { Step.allCases.allSatisfy { self[$0] == nil } }
}

/// `limits.footprint:`. What happens to a worker by its measured footprint. The engine enforces it, so that it needs no
/// memory controller.
public struct FootprintLimits: Codable, Hashable, Sendable {
  /// Over this the worker is asked to free memory. `nil`: never for its size.
  public var warn: ByteCount?
  /// Over this it is hibernated as soon as it isn't in use. `nil`: never for its size.
  public var hibernate: ByteCount?
  /// Over this it is ended in an orderly way and started again. `nil`: never for its size.
  public var restart: ByteCount?
  /// How long the footprint must be over a limit.
  public var sustainedFor: Duration

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

  /// In the order in which a growing worker reaches them.
  public enum Step: String, Codable, Hashable, Sendable, CaseIterable {
    case warn, hibernate, restart

    /// `limits.footprint.warn`
    public var path: String { "limits.footprint.\(rawValue)" }
  }

  public subscript(step: Step) -> ByteCount? {
    switch step {
    case .warn: warn
    case .hibernate: hibernate
    case .restart: restart
    }
  }

  public var isEmpty: Bool { Step.allCases.allSatisfy { self[$0] == nil } }
}

import Policy

/// The values of a policy with their origins, and the values that replace some of them while a
/// daemon runs.
public struct EffectivePolicy: Sendable {
  public private(set) var values: [Value]

  public struct Value: Hashable, Sendable {
    public var path: String
    /// The value as it is applied now.
    public var text: String
    /// The origin of the value that the files have.
    public var origin: Origin
    /// The reason why the value isn't that of the files. `nil`: it is.
    public var change: Change?
  }

  /// A change of a value in the running daemon.
  public struct Change: Hashable, Sendable {
    public enum Source: String, Hashable, Sendable {
      /// The daemon raised it, because the worker was needed too early.
      case learned
      /// The operator requested it (`dormouse shadow`).
      case request
      /// A variable of the daemon's environment set it.
      case environment
      /// The policy and the options of `dormouse wrap` set it.
      case wrapper
    }

    public var source: Source
    /// The value in the files.
    public var declared: String
    /// The reason in one sentence.
    public var text: String
  }

  /// Makes the list from the values of a policy.
  ///
  /// - Parameter worker: a worker of the configuration. `nil` or any other name: the origins are
  ///   the machine's.
  public init(_ policy: LifecyclePolicy, origins: Origins, worker: String? = nil) {
    values = PolicyFile.values(of: policy).map {
      Value(
        path: $0.path, text: $0.text, origin: origins.origin(of: $0.path, worker: worker))
    }
  }

  /// Records that another value is applied. It does nothing if the value is the same.
  public mutating func replace(
    _ path: String, by text: String, _ source: Change.Source, because sentence: String
  ) {
    guard let index = values.firstIndex(where: { $0.path == path }), values[index].text != text
    else { return }
    values[index].change = Change(
      source: source, declared: values[index].text, text: sentence)
    values[index].text = text
  }

  /// Records that another value of the files decides. For example, a machine in shadow mode decides
  /// for a worker whose policy enforces.
  public mutating func replace(_ path: String, by text: String, from origin: Origin) {
    guard let index = values.firstIndex(where: { $0.path == path }), values[index].text != text
    else { return }
    values[index].text = text
    values[index].origin = origin
  }

  /// Marks the values that no file has set and that aren't the defaults: they come from `dormouse
  /// wrap`.
  public mutating func markWrapper() {
    let defaults = Dictionary(
      PolicyFile.values(of: LifecyclePolicy()).map { ($0.path, $0.text) }
    ) { first, _ in first }
    for index in values.indices where values[index].origin == .byDefault {
      guard let usual = defaults[values[index].path], usual != values[index].text else { continue }
      values[index].change = Change(
        source: .wrapper, declared: usual, text: "set by `dormouse wrap`: its policy or its options"
      )
    }
  }
}

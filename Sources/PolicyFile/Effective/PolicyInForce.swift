import Policy

/// The policy as a running daemon applies it: the values of the files, and what replaces some of them
/// while the daemon runs.
public struct PolicyInForce: Sendable {
  public private(set) var values: [Value]

  public struct Value: Hashable, Sendable {
    public var path: String
    /// As it is applied now.
    public var text: String
    /// The origin of the value that the files have.
    public var origin: Origin
    /// Why the value isn't that of the files; `nil`: it is.
    public var change: Change?
  }

  /// The source of the value that replaced the files' value.
  public struct Change: Hashable, Sendable {
    public enum Source: String, Hashable, Sendable {
      /// The daemon raised it, because the worker was needed too soon.
      case learned
      /// The operator requested it (`dormouse shadow`).
      case request
      /// A variable of the daemon's environment.
      case environment
      /// The policy and the options of `dormouse wrap`.
      case wrapper
    }

    public var source: Source
    /// What the files say.
    public var declared: String
    /// One sentence.
    public var text: String
  }

  /// - Parameter worker: a worker of the configuration; `nil` or any other name: the machine's origins.
  public init(_ policy: LifecyclePolicy, origins: Origins, worker: String? = nil) {
    values = PolicyFile.values(of: policy).map {
      Value(
        path: $0.path, text: $0.text, origin: origins.origin(of: $0.path, worker: worker))
    }
  }

  /// Another value is applied. No change where it is the same.
  public mutating func replace(
    _ path: String, by text: String, _ source: Change.Source, because sentence: String
  ) {
    guard let index = values.firstIndex(where: { $0.path == path }), values[index].text != text
    else { return }
    values[index].change = Change(
      source: source, declared: values[index].text, text: sentence)
    values[index].text = text
  }

  /// Another value of the files decides: a machine in shadow mode, for a worker whose policy enforces.
  public mutating func replace(_ path: String, by text: String, from origin: Origin) {
    guard let index = values.firstIndex(where: { $0.path == path }), values[index].text != text
    else { return }
    values[index].text = text
    values[index].origin = origin
  }

  /// Values that no file has set, and that aren't the defaults, come from `dormouse wrap`.
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

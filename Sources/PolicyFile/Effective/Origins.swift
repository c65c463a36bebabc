/// Where a value comes from.
public struct Origin: Hashable, Sendable {
  public enum Layer: String, Hashable, Sendable, CaseIterable {
    /// No file says anything.
    case defaults = "default"
    /// The policy file.
    case policy
    /// `policy_overrides` of the configuration.
    case overrides
    /// A worker's own entry in the configuration.
    case worker
    /// The rule of `adopt:` by which the worker was adopted.
    case rule
    /// An option of the command (`--set`).
    case option
  }
  public var layer: Layer
  /// The path that was given to the daemon, or to another reader; `nil`: by default.
  public var file: String?
  /// Of the key. `nil`: by default.
  public var position: Position?

  public static let byDefault = Origin(layer: .defaults)

  /// `default`, or `etc/dormouse.yaml:12`.
  public var text: String {
    guard let file else { return "default" }
    return position.map { "\(file):\($0.line)" } ?? file
  }
}

/// Which line of which file every value of a configuration comes from.
public struct Origins: Hashable, Sendable {
  /// What one file set.
  struct Source: Hashable, Sendable {
    var layer: Origin.Layer
    var file: String
    /// By path: `hibernate.disk.budget`.
    var keys: [String: Position]
  }

  /// From the policy file up: the last one that names a key decides.
  var machine: [Source] = []
  /// Overrides by worker; their paths are those of policies, too.
  var overrides: [String: Source] = [:]
  /// A worker's own keys: `command`, `readiness.tcp`.
  var declarations: [String: Source] = [:]

  public init() {}

  /// The name under which `origin(of:worker:)` knows a rule of `adopt:`. No worker has a name with a blank.
  public static func name(ofRule rule: String) -> String { "adopt \(rule)" }

  /// Where a value of the policy comes from: of a worker's, or of the machine's.
  ///
  /// - Parameter path: as in docs/policy-files.md, with dots: `hibernate.max_footprint`. One inside a
  ///   value, such as `pressure.warning.available_below`, has its value's origin.
  public func origin(of path: String, worker: String? = nil) -> Origin {
    let own = worker.flatMap { overrides[$0] }.map { [$0] } ?? []
    let candidates = [path] + Places.ancestors(of: path)
    for source in own + machine.reversed() {
      for candidate in candidates {
        if let position = source.keys[candidate] {
          return Origin(layer: source.layer, file: source.file, position: position)
        }
      }
    }
    return .byDefault
  }

  /// Keys of the files so far are no keys of the policy that extends them.
  mutating func forget(_ keys: [String]) {
    for place in machine.indices {
      for key in keys { machine[place].keys[key] = nil }
    }
  }

  /// Where a worker's own key comes from, such as `command`; the whole entry's place for `nil`.
  public func origin(ofWorker name: String, key: String? = nil) -> Origin {
    guard let source = declarations[name] else { return .byDefault }
    guard let position = source.keys[key ?? ""] else { return .byDefault }
    return Origin(layer: source.layer, file: source.file, position: position)
  }

  /// Lines for the section with a policy's keys that a file has already, which may stand there once only; nil:
  /// there is none.
  ///
  /// - Parameter name: of a worker or a rule; nil: of `policy_overrides`.
  public func lines(
    of settings: [(key: String, value: String)], worker name: String?
  ) -> (section: Origin, text: String)? {
    let source = name.map { overrides[$0] } ?? machine.last { $0.layer == .overrides }
    guard let source else { return nil }
    let own = name.flatMap { declarations[$0] }
    let first = source.keys.filter { $0.key.contains(".") }.values.min()
    guard let position = own.map({ $0.keys["policy"] }) ?? first else { return nil }
    let lines = OverrideLine.lines(settings, beside: source.keys)
    return (
      Origin(layer: source.layer, file: source.file, position: position),
      lines.joined(separator: "\n")
    )
  }
}

extension Origin {
  init(layer: Layer) { self.init(layer: layer, file: nil, position: nil) }
}

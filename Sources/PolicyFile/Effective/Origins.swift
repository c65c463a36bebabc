/// The origin of a value.
public struct Origin: Hashable, Sendable {
  public enum Layer: String, Hashable, Sendable, CaseIterable {
    /// The value is the default, because no file sets it.
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
  /// The path that was given to the daemon or to another reader. `nil`: the value is the default.
  public var file: String?
  /// The position of the key. `nil`: the value is the default.
  public var position: Position?

  public static let byDefault = Origin(layer: .defaults)

  /// The origin as text: `default`, or `etc/dormouse.yaml:12`.
  public var text: String {
    guard let file else { return "default" }
    return position.map { "\(file):\($0.line)" } ?? file
  }
}

/// The file and the line of every value of a configuration.
public struct Origins: Hashable, Sendable {
  /// The keys that one file has set.
  struct Source: Hashable, Sendable {
    var layer: Origin.Layer
    var file: String
    /// The positions of the keys, by path: `hibernate.disk.budget`.
    var keys: [String: Position]
  }

  /// The sources of the machine's policy, from the policy file up. The last one that has a key
  /// decides.
  var machine: [Source] = []
  /// The overrides by worker. Their paths are those of policies, too.
  var overrides: [String: Source] = [:]
  /// The keys of each worker's entry: `command`, `readiness.tcp`.
  var declarations: [String: Source] = [:]

  /// The name by which `origin(of:worker:)` finds a rule of `adopt:`. No worker has a name with a
  /// blank.
  public static func name(ofRule rule: String) -> String { "adopt \(rule)" }

  /// Returns the origin of a value of a worker's policy, or of the machine's.
  ///
  /// - Parameter path: the key as in docs/policy-files.md, with dots: `hibernate.max_footprint`. A
  ///   path inside a value, such as `pressure.warning.available_below`, has its value's origin.
  public func origin(of path: String, worker: String? = nil) -> Origin {
    let workerSources = worker.flatMap { overrides[$0] }.map { [$0] } ?? []
    let candidates = [path] + KeyPositions.ancestors(of: path)
    for source in workerSources + machine.reversed() {
      for candidate in candidates {
        if let position = source.keys[candidate] {
          return Origin(layer: source.layer, file: source.file, position: position)
        }
      }
    }
    return .byDefault
  }

  /// Removes keys that concern only the files so far, and not the policy that extends them.
  mutating func forget(_ keys: [String]) {
    for index in machine.indices {
      for key in keys { machine[index].keys[key] = nil }
    }
  }

  /// Returns the origin of a worker's own key, such as `command`. For `nil` it is the origin of the
  /// whole entry.
  public func origin(ofWorker name: String, key: String? = nil) -> Origin {
    guard let source = declarations[name] else { return .byDefault }
    guard let position = source.keys[key ?? ""] else { return .byDefault }
    return Origin(layer: source.layer, file: source.file, position: position)
  }

  /// Returns the lines to add to the section of a policy's keys that a file has already, because a
  /// file may have only one. nil: there is no such section.
  ///
  /// - Parameter name: the name of a worker or a rule. nil: the section is `policy_overrides`.
  public func lines(
    of settings: [(key: String, value: String)], worker name: String?
  ) -> (section: Origin, text: String)? {
    let source = name.map { overrides[$0] } ?? machine.last { $0.layer == .overrides }
    guard let source else { return nil }
    let workerSources = name.flatMap { declarations[$0] }
    let first = source.keys.filter { $0.key.contains(".") }.values.min()
    guard let position = workerSources.map({ $0.keys["policy"] }) ?? first else { return nil }
    let lines = OverrideLine.lines(settings, beside: source.keys)
    return (
      Origin(layer: source.layer, file: source.file, position: position),
      lines.joined(separator: "\n")
    )
  }
}

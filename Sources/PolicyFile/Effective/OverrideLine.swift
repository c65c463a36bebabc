/// Makes a line of a configuration that sets values of a policy.
public enum OverrideLine {
  /// Returns a line such as `policy_overrides: { hibernate: { after: 30s } }`.
  ///
  /// - Parameters:
  ///   - settings: dotted keys, each once, and their values as in a file.
  ///   - worker: the worker whose own policy gets them. nil: the machine's policy.
  public static func text(_ settings: [(key: String, value: String)], worker: String? = nil)
    -> String
  {
    guard let worker else { return "policy_overrides: \(flow(settings))" }
    let values = mapping(splitPaths(settings))
    return "workers: \(YAMLText.mapping([(worker, .mapping([("policy", values)]))]).flow)"
  }

  /// Returns `policy: { hibernate: { after: 30s } }`, for a worker's own entry.
  public static func policy(_ settings: [(key: String, value: String)]) -> String {
    "policy: \(flow(settings))"
  }

  /// Returns `{ hibernate: { after: 30s } }`, for a policy file.
  public static func flow(_ settings: [(key: String, value: String)]) -> String {
    mapping(splitPaths(settings)).flow
  }

  /// Returns the lines to add to a section that has keys already: one for each of its sections and
  /// keys.
  static func lines(
    _ settings: [(key: String, value: String)], beside keys: [String: Position]
  ) -> [String] {
    var new: [(key: String, value: String)] = []
    var lines: [String] = []
    for (key, value) in settings {
      let section = KeyPositions.ancestors(of: key).first { section in
        keys.keys.contains { $0.hasPrefix("\(section).") }
      }
      guard let section else {
        new.append((key, value))
        continue
      }
      let remainder = String(key.dropFirst(section.count + 1))
      let old = keys[key].map { ", instead of that in line \($0.line)" } ?? ""
      let location = "in `\(section)`\(old)"
      lines += pairs(splitPaths([(remainder, value)])).map { "\($0): \($1.flow)  # \(location)" }
    }
    return lines + pairs(splitPaths(new)).map { "\($0): \($1.flow)" }
  }

  private static func splitPaths(
    _ settings: [(key: String, value: String)]
  ) -> [(path: ArraySlice<String>, value: String)] {
    settings.map { ($0.key.split(separator: ".").map(String.init)[...], $0.value) }
  }

  /// Writes a section once for all of its keys that are set.
  private static func mapping(_ settings: [(path: ArraySlice<String>, value: String)]) -> YAMLText {
    .mapping(pairs(settings))
  }

  private static func pairs(
    _ settings: [(path: ArraySlice<String>, value: String)]
  ) -> [(String, YAMLText)] {
    var names: [String] = []
    for case let name? in settings.map(\.path.first) where !names.contains(name) {
      names.append(name)
    }
    return names.map { name -> (String, YAMLText) in
      let inner = settings.filter { $0.path.first == name }
      if let value = inner.first(where: { $0.path.count == 1 })?.value {
        return (name, .plain(value))
      }
      return (name, mapping(inner.map { ($0.path.dropFirst(), $0.value) }))
    }
  }
}

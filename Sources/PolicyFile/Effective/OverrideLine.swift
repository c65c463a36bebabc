/// A line of a configuration that sets values of a policy.
public enum OverrideLine {
  /// `policy_overrides: { hibernate: { after: 30s } }`
  ///
  /// - Parameters:
  ///   - settings: dotted keys, each once, and their values as a file has them.
  ///   - worker: the worker whose own policy gets them; nil: the machine's policy.
  public static func text(_ settings: [(key: String, value: String)], worker: String? = nil)
    -> String
  {
    let parts = settings.map { setting in
      (setting.key.split(separator: ".").map(String.init)[...], setting.value)
    }
    let values = mapping(parts)
    guard let worker else { return "policy_overrides: \(values.flow)" }
    return "workers: \(YAMLText.mapping([(worker, .mapping([("policy", values)]))]).flow)"
  }

  /// A section is written once, however many of its keys are set.
  private static func mapping(_ settings: [(path: ArraySlice<String>, value: String)]) -> YAMLText {
    var names: [String] = []
    for case let name? in settings.map(\.path.first) where !names.contains(name) {
      names.append(name)
    }
    let pairs = names.map { name -> (String, YAMLText) in
      let inner = settings.filter { $0.path.first == name }
      if let value = inner.first(where: { $0.path.count == 1 })?.value {
        return (name, .plain(value))
      }
      return (name, mapping(inner.map { ($0.path.dropFirst(), $0.value) }))
    }
    return .mapping(pairs)
  }
}

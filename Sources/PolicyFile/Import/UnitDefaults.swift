/// The variables of `Environment=` that no file of `EnvironmentFile=` sets. In systemd these files
/// override `Environment=` (systemd.exec(5)). In a configuration, `environment` overrides
/// `env_file`.
struct UnitDefaults {
  private(set) var pairs: [(String, YAMLText)]
  private(set) var notes: [String] = []

  /// - Parameters:
  ///   - pairs: the variables of `Environment=`.
  ///   - files: the paths of `EnvironmentFile=`.
  ///   - read: returns the variables of a file. nil: it can't be read.
  init(
    _ pairs: [(String, YAMLText)], below files: [String], read: (String) -> [String: String]?
  ) {
    self.pairs = pairs
    if pairs.isEmpty { return }
    var overridden: Set<String> = []
    var unread: [String] = []
    for file in files {
      if let variables = read(file) {
        overridden.formUnion(variables.keys)
      } else {
        unread.append(file)
      }
    }
    self.pairs = pairs.filter { !overridden.contains($0.0) }
    let names = Set(pairs.map { $0.0 }).intersection(overridden).sorted()
    if !names.isEmpty {
      notes.append("`Environment`: without \(quoted(names)), which `EnvironmentFile` overrides.")
    }
    if !unread.isEmpty {
      notes.append(
        "In systemd `EnvironmentFile` overrides `Environment`, and here `environment` overrides "
          + "`env_file`: remove from `environment` what \(quoted(unread)) sets.")
    }
  }
}

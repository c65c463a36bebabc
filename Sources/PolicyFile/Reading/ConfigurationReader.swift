import Policy
import YAML

/// Reads the top levels of the files of a configuration, as if they were one.
struct ConfigurationReader {
  var directory: String
  var library: PolicyLibrary
  var environment: [String: String]
  /// The policy's name or path that replaces the files' own `policy:`.
  var replacement: String?
  /// True if all files could be read. Then a name that none of them declares is an error.
  var isComplete = true
  var wait = ConfigurationFile.endlessly

  func read(_ files: [MappingReader]) -> DaemonConfiguration {
    for file in files {
      file.directory = directory
      file.commands = CommandReader(variables: environment, owner: "the daemon")
    }
    var configuration = DaemonConfiguration()
    configuration.library = library
    configuration.policy = policy(files, &configuration.origins)
    overrides(files, &configuration)
    for key in ConfigurationKeys.all {
      once(key.name, in: files) { file, isFirst in
        var read = configuration
        [key].read(file, into: &read)
        if isFirst { configuration = read }
      }
    }
    WorkerEntries(
      directory: directory, environment: environment, isComplete: isComplete, wait: wait
    ).read(files, into: &configuration)
    adoption(files, &configuration)
    for file in files {
      file.reportMisplacedWorkers()
      file.finish()
    }
    return configuration
  }

  /// Reads a key that only one file may have. The values in other files aren't used.
  private func once(
    _ key: String, in files: [MappingReader], _ read: (MappingReader, _ isFirst: Bool) -> Void
  ) {
    var first: String?
    for file in files {
      read(file, first == nil)
      guard file.position(ofKey: key) != nil else { continue }
      if let first {
        file.sink.error(
          at: file.position(ofKey: key), "`\(key)` is given twice; the first is \(first)",
          suggestion: "leave one of them out")
      }
      first = first ?? file.location(ofKey: key)
    }
  }

  // MARK: the policy

  private func policy(_ files: [MappingReader], _ origins: inout Origins) -> LifecyclePolicy {
    let wanted = Converter.text("the name of a policy, or the path of a policy file")
    var written: (name: String, file: MappingReader)?
    once("policy", in: files) { file, isFirst in
      let name = file.read("policy", as: wanted)
      if isFirst { written = name.map { ($0, file) } }
    }
    let name = replacement ?? written?.name ?? PolicyLibrary.usualPolicy
    let sink = written?.file.sink ?? files.first?.sink
    let position = written?.file.positions["policy"]
    let result: ParseResult<LoadedPolicy>
    if PolicyLibrary.isPath(name) {
      let file = replacement == nil ? FilePaths.resolve(name, from: directory) : name
      result = PolicyFile.loadWithOrigins(path: file, library: library)
    } else if name == LifecyclePolicy().name, library.path(of: name) == nil {
      return LifecyclePolicy()
    } else if library.names.contains(name) {
      // The library finds it in a file or in the executable.
      result = library.loadWithOrigins(name)
    } else {
      let missing = library.missing(name)
      sink?.error(at: position, missing.message, suggestion: missing.suggestion)
      return LifecyclePolicy()
    }
    sink?.add(result.diagnostics)
    if result.value == nil {
      sink?.error(at: position, "the policy `\(shortened(name))` can't be used")
    }
    origins = result.value?.origins ?? origins
    return result.value?.policy ?? LifecyclePolicy()
  }

  /// Lays the overrides of all files over the policy in their order, and then checks them together.
  private func overrides(_ files: [MappingReader], _ configuration: inout DaemonConfiguration) {
    let key = "policy_overrides"
    var readers: [MappingReader] = []
    var locations: [String: String] = [:]
    for file in files {
      guard let reader = file.overrides(key) else { continue }
      configuration.policy = PolicyReader(scope: .overrides)
        .keys(reader, over: configuration.policy)
      readers.append(reader)
      let settings = reader.positions.settings
      for (path, position) in settings.sorted(by: { $0.value < $1.value }) {
        if let first = locations[path] {
          reader.sink.error(
            at: position, "`\(path)` is overridden twice; the first is \(first)",
            suggestion: "leave one of them out")
        }
        locations[path] = reader.sink.location(position)
      }
      configuration.origins.machine.append(
        Origins.Source(layer: .overrides, file: reader.sink.source.file, keys: settings))
    }
    PolicyChecks(policy: configuration.policy, readers: readers).run()
  }

  // MARK: rules of adoption

  private func adoption(_ files: [MappingReader], _ configuration: inout DaemonConfiguration) {
    let rules = AdoptionReader(library: library, policy: configuration.policy).read(files)
    configuration.adoption = rules.map(\.rule)
    for each in rules {
      configuration.origins.overrides[Origins.name(ofRule: each.rule.name)] = each.source
    }
  }
}

extension MappingReader {
  /// Reports a worker that is declared outside `workers`: an unknown key with a `command` in it.
  fileprivate func reportMisplacedWorkers() {
    for key in claimUnknownKeys(holding: "command") {
      sink.error(
        at: position(ofKey: key),
        "`\(shortened(key))` is a worker at the top: `workers:` is missing",
        suggestion: "write `workers:` on a line above it, and indent the worker below that")
    }
  }

  /// The location of a key for messages: `etc/dormouse.yaml:3:5`.
  func location(ofKey key: String) -> String { sink.location(position(ofKey: key)) }

  /// Returns a reader for keys of a policy below a key, with separate positions.
  func overrides(_ key: String) -> MappingReader? {
    node(key).flatMap { reader(of: $0, called: key, positions: KeyPositions()) }
  }
}

extension DiagnosticSink {
  func location(_ position: Position?) -> String {
    position.map { "\(source.file):\($0.line):\($0.column)" } ?? source.file
  }
}

extension Converter where Value == String {
  /// A path, relative to a directory.
  static func path(_ expects: String, from directory: String) -> Converter {
    Converter.text(expects).checked { path in
      path.isEmpty ? .wrongKind : homeProblem(path, else: ", or `${HOME}`")
    }.map { FilePaths.resolve($0, from: directory) }
  }

  static func homeProblem(_ path: String, else other: String = "") -> Problem? {
    guard path == "~" || path.hasPrefix("~/") else { return nil }
    return Problem(
      message: "can't begin with `~`: only a shell expands it",
      suggestion: "write the path out\(other)")
  }
}

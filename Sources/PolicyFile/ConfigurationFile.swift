import Policy
import Yams

/// `dormouse.yaml`: YAML to `DaemonConfiguration`. docs/configuration.md lists the keys.
public enum ConfigurationFile {
  /// Reads a configuration. Paths in it start from the directory of `file`.
  ///
  /// - Parameters:
  ///   - library: where policies are found by name.
  ///   - environment: what `${VAR}` is expanded from.
  ///   - policy: a name or path that takes the place of the file's `policy:`; a path starts from the
  ///     working directory.
  public static func parse(
    text: String, file: String, library: PolicyLibrary, environment: [String: String],
    policy: String? = nil
  ) -> ParseResult<DaemonConfiguration> {
    let sink = DiagnosticSink(source: SourceText(text: text, file: file))
    guard let document = Document.compose(sink) else { return sink.result(nil) }
    guard let mapping = sink.topMapping(document.root, of: "a configuration") else {
      return sink.result(nil)
    }
    let reader = MappingReader(mapping, title: "", renamed: document.renamed, sink: sink)
    let configuration = ConfigurationReader(
      directory: FilePaths.directory(of: file), library: library, environment: environment,
      replacement: policy)
    return sink.result(configuration.read(reader))
  }

  /// Reads a configuration from a file, by its path.
  public static func load(
    path: String, library: PolicyLibrary, environment: [String: String], policy: String? = nil
  ) -> ParseResult<DaemonConfiguration> {
    switch FileContents.read(path) {
    case .success(let text):
      parse(
        text: text, file: path, library: library, environment: environment, policy: policy)
    case .failure(let problem):
      ParseResult(value: nil, diagnostics: [problem.diagnostic])
    }
  }
}

/// Reads the top of a configuration.
struct ConfigurationReader {
  var directory: String
  var library: PolicyLibrary
  var environment: [String: String]
  /// Instead of the file's own `policy:`.
  var replacement: String?

  func read(_ top: MappingReader) -> DaemonConfiguration {
    var configuration = DaemonConfiguration()
    configuration.policy = policy(top)
    if let node = top.node("policy_overrides"),
      let reader = top.reader(of: node, called: "policy_overrides", places: .init())
    {
      configuration.policy = PolicyReader(scope: .overrides)
        .read(reader, over: configuration.policy)
    }
    configuration.stateDirectory = top.read("state_directory", as: path("a directory's path"))
    configuration.socket = top.read("socket", as: path("a socket's path").checked(Self.socketFits))
    top.section("journal") { configuration.journal.read($0, directory: directory) }
    if let node = top.node("workers"), let workers = top.reader(of: node, called: "workers") {
      configuration.workers = self.workers(workers, policy: configuration.policy)
    }
    top.finish()
    return configuration
  }

  private func path(_ expects: String) -> Converter<String> {
    Converter.path(expects, from: directory)
  }

  /// `sun_path` has 108 bytes, the last one a NUL.
  private static func socketFits(_ path: String) -> Problem? {
    path.utf8.count <= 107
      ? nil
      : Problem(
        message: "is \(path.utf8.count) bytes long; a socket's path has at most 107",
        suggestion: "choose a shorter directory, such as one in `/run`")
  }

  private func policy(_ top: MappingReader) -> LifecyclePolicy {
    let wanted = Converter.text("the name of a policy, or the path of a policy file")
    let written = top.read("policy", as: wanted)
    guard let name = replacement ?? written else { return LifecyclePolicy() }
    let result: ParseResult<LifecyclePolicy>
    if replacement != nil, PolicyLibrary.isPath(name) {
      result = PolicyFile.load(path: name)
    } else if PolicyLibrary.isPath(name) {
      result = PolicyFile.load(path: FilePaths.resolve(name, from: directory))
    } else if let path = library.path(of: name) {
      result = PolicyFile.load(path: path)
    } else {
      let missing = PolicyLibrary.Missing(name: name, library: library)
      top.sink.error(
        at: top.places["policy"], missing.message, suggestion: missing.suggestion)
      return LifecyclePolicy()
    }
    top.sink.add(result.diagnostics)
    if result.value == nil {
      top.sink.error(at: top.places["policy"], "the policy `\(shortened(name))` can't be used")
    }
    return result.value ?? LifecyclePolicy()
  }

  private func workers(
    _ reader: MappingReader, policy: LifecyclePolicy
  ) -> [WorkerConfiguration] {
    reader.order.compactMap { name in
      guard let node = reader.node(name) else { return nil }
      if !isName(name) {
        reader.sink.error(
          at: reader.position(ofKey: name), "`\(shortened(name))` can't be a worker's name",
          suggestion: "a name has \(nameRule)")
      }
      guard let worker = reader.reader(of: node, called: name) else { return nil }
      return WorkerReader(
        name: name, reader: worker, directory: directory, environment: environment, policy: policy
      ).read(at: reader.position(ofKey: name))
    }
  }
}

extension Converter where Value == String {
  /// A path, as seen from a directory.
  static func path(_ expects: String, from directory: String) -> Converter {
    Converter.text(expects).checked { path in
      if path.isEmpty { return .wrongKind }
      return path == "~" || path.hasPrefix("~/")
        ? Problem(
          message: "can't begin with `~`: only a shell expands it", suggestion: "write the path out"
        )
        : nil
    }.map { FilePaths.resolve($0, from: directory) }
  }
}

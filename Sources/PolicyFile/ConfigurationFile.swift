import Policy
import YAML

/// `dormouse.yaml` and its `conf.d`: YAML to `DaemonConfiguration`. docs/configuration.md lists the
/// keys.
public enum ConfigurationFile {
  /// Runs work that may wait for a file system, about a subject; false: it hasn't ended in time, and continues.
  public typealias FileWait =
    @Sendable (
      _ subject: String, _ work: @escaping @Sendable () -> Void
    ) -> Bool

  /// However long it takes.
  public static let endlessly: FileWait = { _, work in
    work()
    return true
  }

  /// Reads a configuration that is one text. Paths in it start from the directory of `file`.
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
    parse(
      [SourceText(text: text, file: file)], directory: FilePaths.directory(of: file),
      library: library, environment: environment, policy: policy)
  }

  /// Reads a configuration from a file, or from the directory that holds `dormouse.yaml`; with what is
  /// in `conf.d` beside it.
  ///
  /// - Parameters:
  ///   - changed: the text that `path`, a file, is to have.
  ///   - wait: for the files of variables, which may be on a file system that doesn't answer.
  public static func load(
    path: String, library: PolicyLibrary, environment: [String: String], policy: String? = nil,
    changed: String? = nil, wait: @escaping FileWait = endlessly
  ) -> ParseResult<DaemonConfiguration> {
    let files: ConfigurationFiles
    switch ConfigurationFiles.find(path) {
    case .success(let found): files = found
    case .failure(let problem): return ParseResult(value: nil, diagnostics: [problem.diagnostic])
    }
    var texts: [SourceText] = []
    var unreadable: [Diagnostic] = []
    if let changed { texts.append(SourceText(text: changed, file: path)) }
    for file in files.paths where changed == nil || file != path {
      switch FileContents.read(file) {
      case .success(let text): texts.append(SourceText(text: text, file: file))
      case .failure(let problem): unreadable.append(problem.diagnostic)
      }
    }
    var result = parse(
      texts, directory: files.directory, library: library, environment: environment,
      policy: policy, wait: wait)
    result = ParseResult(value: result.value, diagnostics: unreadable + result.diagnostics)
    return result
  }

  private static func parse(
    _ texts: [SourceText], directory: String, library: PolicyLibrary,
    environment: [String: String], policy: String?, wait: @escaping FileWait = endlessly
  ) -> ParseResult<DaemonConfiguration> {
    let expander = Expander(variables: environment)
    let sinks = texts.map(DiagnosticSink.init(source:))
    let parts = sinks.compactMap { sink -> MappingReader? in
      guard let document = Document.compose(sink),
        let mapping = sink.topMapping(document.root, of: "a configuration")
      else { return nil }
      return MappingReader(mapping, title: "", sink: sink, expander: expander)
    }
    let reader = ConfigurationReader(
      directory: directory, library: library, environment: environment, replacement: policy,
      isComplete: parts.count == texts.count, wait: wait)
    let value = reader.read(parts)
    let diagnostics = sinks.flatMap { sink in
      let result: ParseResult<Int> = sink.result(nil)
      return result.diagnostics
    }
    return ParseResult(value: value, diagnostics: diagnostics)
  }
}

/// The files that a configuration consists of.
public struct ConfigurationFiles {
  /// What paths in all of them start from.
  var directory: String
  /// The main file first, then those of `conf.d` by their names.
  public var paths: [String]

  static let mainNames = ["dormouse.yaml", "dormouse.yml"]

  /// - Parameter path: a file, or a directory with a `dormouse.yaml`. A file of that name has a
  ///   `conf.d` beside it; one of another name stands alone.
  static func find(_ path: String) -> Result<ConfigurationFiles, Unreadable> {
    if FileContents.isDirectory(path) {
      let main = mainNames.map { FilePaths.resolve($0, from: path) }.first(
        where: FileContents.exists)
      return find(
        main: main ?? FilePaths.resolve(mainNames[0], from: path), in: path)
    }
    let name = path.split(separator: "/").last.map(String.init) ?? path
    guard mainNames.contains(name) else {
      return .success(
        ConfigurationFiles(directory: FilePaths.directory(of: path), paths: [path]))
    }
    return find(main: path, in: FilePaths.directory(of: path))
  }

  /// The configuration that a file belongs to: of one in a `conf.d`, the directory that holds it, where
  /// there is a `dormouse.yaml`; of any other, the file itself.
  public static func whole(of path: String) -> String {
    let parent = FilePaths.directory(of: path)
    guard parent == "conf.d" || parent.hasSuffix("/conf.d"), FileContents.exists(path) else {
      return path
    }
    let main = FilePaths.directory(of: parent)
    return mainNames.contains { FileContents.exists(FilePaths.resolve($0, from: main)) }
      ? main : path
  }

  /// The first file of a configuration, whether or not it exists.
  public static func main(of path: String) -> String {
    guard case .success(let files) = find(path) else { return path }
    return files.paths.first ?? path
  }

  /// Whether a directory, or the one of a file, holds a configuration.
  public static func isThere(_ path: String) -> Bool {
    guard case .success(let files) = find(path) else { return true }
    return files.paths.contains(where: FileContents.exists)
  }

  private static func find(
    main: String, in directory: String
  ) -> Result<ConfigurationFiles, Unreadable> {
    let parts = FilePaths.resolve("conf.d", from: directory)
    guard FileContents.exists(parts) else {
      return .success(ConfigurationFiles(directory: directory, paths: [main]))
    }
    switch FileContents.listing(of: parts) {
    case .failure(let problem): return .failure(problem)
    case .success(let names):
      let files = names.filter {
        !$0.hasPrefix(".") && ($0.hasSuffix(".yaml") || $0.hasSuffix(".yml"))
      }
      .map { FilePaths.resolve($0, from: parts) }
      // All may be in `conf.d`.
      let hasMain = files.isEmpty || FileContents.exists(main)
      return .success(
        ConfigurationFiles(directory: directory, paths: (hasMain ? [main] : []) + files))
    }
  }
}

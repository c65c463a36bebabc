import YAML

/// Reads `dormouse.yaml` and its `conf.d` as a `DaemonConfiguration`. docs/configuration.md lists
/// the keys.
public enum ConfigurationFile {
  /// Runs work that may wait for a file system. `subject` is the directory concerned. The result is
  /// false if the work hasn't ended in time; it continues then.
  public typealias FileWait =
    @Sendable (
      _ subject: String, _ work: @escaping @Sendable () -> Void
    ) -> Bool

  /// Runs work without a time limit.
  public static let endlessly: FileWait = { _, work in
    work()
    return true
  }

  /// Reads a configuration that is one text. Its paths are relative to the directory of `file`.
  ///
  /// - Parameters:
  ///   - library: the directories in which policies are searched by name.
  ///   - environment: the variables for `${VAR}`.
  ///   - policy: a name or path that replaces the file's `policy:`. A path is relative to the
  ///     working directory.
  public static func parse(
    text: String, file: String, library: PolicyLibrary, environment: [String: String],
    policy: String? = nil
  ) -> ParseResult<DaemonConfiguration> {
    parse(
      [SourceText(text: text, file: file)], directory: FilePaths.directory(of: file),
      library: library, environment: environment, policy: policy)
  }

  /// Reads a configuration from a file, or from the directory that has `dormouse.yaml`, with the
  /// files of the `conf.d` beside it.
  ///
  /// - Parameters:
  ///   - changed: the text that is read instead of the text of `path`, which is a file.
  ///   - wait: runs the reading of the files of variables, which may be on a file system that
  ///     doesn't answer.
  public static func load(
    path: String, library: PolicyLibrary, environment: [String: String], policy: String? = nil,
    changed: String? = nil, wait: @escaping FileWait = endlessly
  ) -> ParseResult<DaemonConfiguration> {
    let files: ConfigurationFiles
    switch ConfigurationFiles.find(path) {
    case .success(let configurationFiles): files = configurationFiles
    case .failure(let problem): return ParseResult(value: nil, diagnostics: [problem])
    }
    var texts: [SourceText] = []
    var unreadable: [Diagnostic] = []
    if let changed { texts.append(SourceText(text: changed, file: path)) }
    for file in files.paths where changed == nil || file != path {
      switch FileContents.read(file) {
      case .success(let text): texts.append(SourceText(text: text, file: file))
      case .failure(let problem): unreadable.append(problem)
      }
    }
    let result = parse(
      texts, directory: files.directory, library: library, environment: environment,
      policy: policy, wait: wait)
    return ParseResult(value: result.value, diagnostics: unreadable + result.diagnostics)
  }

  /// Reads only `state_directory`, whatever errors the configuration has elsewhere. A daemon that
  /// doesn't start because of them may have left workers asleep there.
  ///
  /// - Returns: the directory; nil if no file that can be read names one.
  public static func stateDirectory(path: String, environment: [String: String]) -> String? {
    guard case .success(let files) = ConfigurationFiles.find(path) else { return nil }
    for file in files.paths {
      guard case .success(let text) = FileContents.read(file) else { continue }
      let sink = DiagnosticSink(source: SourceText(text: text, file: file))
      let expander = Expander(variables: environment)
      guard let reader = sink.topReader(of: "a configuration", expander: expander) else { continue }
      reader.directory = files.directory
      var configuration = DaemonConfiguration()
      let keys = ConfigurationKeys.all.filter { $0.name == "state_directory" }
      keys.read(reader, into: &configuration)
      if let directory = configuration.stateDirectory { return directory }
    }
    return nil
  }

  private static func parse(
    _ texts: [SourceText], directory: String, library: PolicyLibrary,
    environment: [String: String], policy: String?, wait: @escaping FileWait = endlessly
  ) -> ParseResult<DaemonConfiguration> {
    let expander = Expander(variables: environment)
    let sinks = texts.map(DiagnosticSink.init(source:))
    let parts = sinks.compactMap { $0.topReader(of: "a configuration", expander: expander) }
    let reader = ConfigurationReader(
      directory: directory, library: library, environment: environment, replacement: policy,
      isComplete: parts.count == texts.count, wait: wait)
    let value = reader.read(parts)
    return ParseResult(value: value, diagnostics: sinks.flatMap(\.diagnostics))
  }
}

/// The files of a configuration.
public struct ConfigurationFiles {
  /// The directory to which paths in all of them are relative.
  var directory: String
  /// The main file first, then the files of `conf.d` by their names.
  public var paths: [String]

  static let mainNames = ["dormouse.yaml", "dormouse.yml"]

  /// Finds the files of a configuration.
  ///
  /// - Parameter path: a file, or a directory with a `dormouse.yaml`. A file of that name has a
  ///   `conf.d` beside it; a file of another name has none.
  static func find(_ path: String) -> Result<ConfigurationFiles, Diagnostic> {
    var (main, directory) = (path, FilePaths.directory(of: path))
    if FileContents.isDirectory(path) {
      let candidates = mainNames.map { FilePaths.resolve($0, from: path) }
      let first = candidates.first { !FileContents.isMissing($0) }
      (main, directory) = (first ?? candidates[0], path)
    } else if !mainNames.contains(FilePaths.name(of: path)) {
      return .success(ConfigurationFiles(directory: directory, paths: [path]))
    }
    let parts = FilePaths.resolve("conf.d", from: directory)
    if FileContents.isMissing(parts) {
      return .success(ConfigurationFiles(directory: directory, paths: [main]))
    }
    return FileContents.listing(of: parts).map { names in
      let files = names.filter {
        !$0.hasPrefix(".") && ($0.hasSuffix(".yaml") || $0.hasSuffix(".yml"))
      }
      .map { FilePaths.resolve($0, from: parts) }
      // All keys may be in `conf.d`, without a main file. If the main file is a link to nothing,
      // or can't be read, its workers aren't removed: that is an error.
      let hasMain = files.isEmpty || !FileContents.isMissing(main)
      return ConfigurationFiles(directory: directory, paths: (hasMain ? [main] : []) + files)
    }
  }

  /// Returns the configuration to which a file belongs. For a file in a `conf.d` it is the
  /// directory above it, if that has a `dormouse.yaml`. For any other file it is the file itself.
  public static func configuration(of path: String) -> String {
    let parent = FilePaths.directory(of: path)
    guard parent == "conf.d" || parent.hasSuffix("/conf.d"), FileContents.exists(path) else {
      return path
    }
    let main = FilePaths.directory(of: parent)
    return mainNames.contains { FileContents.exists(FilePaths.resolve($0, from: main)) }
      ? main : path
  }

  /// Returns the first file of a configuration, whether or not it exists.
  public static func mainFile(of path: String) -> String {
    guard case .success(let files) = find(path) else { return path }
    return files.paths.first ?? path
  }

  /// Returns true if the directory, or the directory of the file, has a configuration.
  public static func exist(at path: String) -> Bool {
    guard case .success(let files) = find(path) else { return true }
    return files.paths.contains(where: FileContents.exists)
  }
}

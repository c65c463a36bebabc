/// Keys of one worker from a command line, such as `restart=on-failure` or `limits.memory=1GB`.
/// Keys and values are those of an entry of `workers:`. A key of a policy needs no `policy.` before
/// it.
public struct WorkerSettings: Hashable, Sendable {
  private struct Setting: Hashable, Sendable {
    var argument: String
    var path: [Substring]
    var value: Substring

    /// Returns true if one key is a section of the other.
    func overlaps(_ other: Setting) -> Bool {
      path.starts(with: other.path) || other.path.starts(with: path)
    }
  }

  private let settings: [Setting]

  /// The keys that a worker which no file declares can't have.
  private static let declaredOnly: Set<String> = [
    "autostart", "depends_on", "env_file", "group", "instances", "listen", "on", "replicas", "user",
    "wake_at",
  ]
  private static let replacedKeys = [
    "command": "give the command after `--`", "directory": "use --directory",
    "environment": "use --env",
  ]

  /// Reads settings.
  ///
  /// - Parameters:
  ///   - arguments: each is `KEY=VALUE`. If two have one key, the last one applies.
  ///   - environment: the worker's environment, for `${VAR}`.
  /// - Throws: `SettingError` for an unknown key or a wrong value.
  public init(
    _ arguments: [String], environment: [String: String] = [:]
  ) throws(SettingError) {
    var settings: [Setting] = []
    for argument in arguments {
      let setting = try Self.setting(argument)
      settings.removeAll { $0.path == setting.path }
      settings.append(setting)
    }
    for (index, one) in settings.enumerated() {
      // An example is `restart=always` and `restart.when=always`.
      for other in settings[..<index] where one.overlaps(other) {
        throw SettingError(one.argument, "contradicts `\(shortened(other.argument))`")
      }
    }
    self.settings = settings
    // An error in a value is reported here, before any work is done.
    _ = try applied(
      to: WorkerConfiguration(name: "worker", command: ["true"], directory: "/"),
      environment: environment)
  }

  /// Returns the worker with these values. The settings of a policy are laid over its policy.
  public func applied(
    to worker: WorkerConfiguration, environment: [String: String] = [:]
  ) throws(SettingError) -> WorkerConfiguration {
    if settings.isEmpty { return worker }
    let lines = YAMLText.lines("command", WorkerRenderer.command(worker.command)) + lines("")
    let text = lines.joined(separator: "\n") + "\n"
    let sink = DiagnosticSink(source: SourceText(text: text, file: "--set"))
    let top = sink.topReader(of: "a worker", expander: Expander(variables: environment))
    try check(sink)
    guard let reader = top else { return worker }
    let read = WorkerReader(
      name: worker.name, reader: reader, directory: worker.directory, environment: environment,
      policy: worker.policy
    ).read(at: nil)
    try check(sink)
    guard var result = read.worker else { return worker }
    (result.command, result.environment) = (worker.command, worker.environment)
    result.notify = result.notify || worker.notify
    if !settings.contains(where: { $0.path == ["importance"] }) {
      result.importance = worker.importance
    }
    result.settings = settings.map(\.argument)
    return result
  }

  /// Returns a text as the value of a key.
  public static func value(_ text: String) -> String { YAMLText.scalar(text) }

  /// The keys that can be set, by path: first those of a worker, then those of a policy.
  public static var keys: [String] {
    let all = KeyExplorer.worker().values().filter { key in
      let first = String(key.prefix { $0 != "." })
      return replacedKeys[first] == nil && !declaredOnly.contains(first)
    }
    let isOfPolicy = { (key: String) in key.hasPrefix("policy.") }
    return all.filter { !isOfPolicy($0) }
      + all.filter(isOfPolicy).map { String($0.dropFirst("policy.".count)) }
  }

  private func check(_ sink: DiagnosticSink) throws(SettingError) {
    guard let error = sink.firstError else { return }
    // An error without a setting's line, such as an unmatched quote, usually belongs to the last
    // setting.
    let line = error.position.map { $0.line } ?? 0
    let setting = settings.first { lineNumber(of: $0) == line } ?? settings.last
    throw SettingError(setting?.argument ?? "", error)
  }

  /// Returns the number of a setting's line in the text that `applied` reads. The command has the
  /// first line.
  private func lineNumber(of setting: Setting) -> Int? {
    let lines = lines("")
    let written = "\(setting.path.last ?? ""): \(setting.value)"
    return lines.firstIndex { $0.drop { $0 == " " } == written }.map { $0 + 2 }
  }

  /// Returns the lines of an entry of `workers:`, with each setting on a separate line.
  func lines(_ indent: String) -> [String] {
    Self.lines(settings.map { ($0.path[...], $0.value) }, indent)
  }

  private static func lines(
    _ settings: [(path: ArraySlice<Substring>, value: Substring)], _ indent: String
  ) -> [String] {
    var names: [Substring] = []
    for case let name? in settings.map(\.path.first) where !names.contains(name) {
      names.append(name)
    }
    return names.flatMap { name -> [String] in
      let inner = settings.filter { $0.path.first == name }
      if let value = inner.first(where: { $0.path.count == 1 })?.value {
        return ["\(indent)\(name): \(value)"]
      }
      return ["\(indent)\(name):"]
        + lines(inner.map { ($0.path.dropFirst(), $0.value) }, indent + "  ")
    }
  }

  private static func setting(_ argument: String) throws(SettingError) -> Setting {
    let (written, value) = try SettingError.parts(of: argument)
    let path = written.split(separator: ".", omittingEmptySubsequences: false)
    let key = path.first.map(String.init) ?? ""
    if let instead = replacedKeys[key] { throw SettingError(argument, instead) }
    if declaredOnly.contains(key) {
      throw SettingError(
        argument, "only a worker in dormouse.yaml can have `\(key)`",
        suggestion: "write it there")
    }
    let name = path.joined(separator: ".")
    let keys = KeyExplorer.worker()
    let isOfPolicy = keys[name] == nil && keys["policy.\(name)"] != nil
    guard keys[name] != nil || isOfPolicy, !path.contains("") else {
      throw SettingError(
        argument, "unknown key `\(shortened(name))`",
        suggestion: didYouMean(name, among: keys.values())
          ?? "docs/configuration.md lists a worker's keys, `dormouse policy show` a policy's")
    }
    return Setting(argument: argument, path: (isOfPolicy ? ["policy"] : []) + path, value: value)
  }
}

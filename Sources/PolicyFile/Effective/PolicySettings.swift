import Policy

/// Values of a policy from a command line, such as `hibernate.after=5m`. Keys and values are those
/// of a policy file.
public struct PolicySettings: Sendable {
  private let settings: [Setting]
  private let scope: PolicyReader.Scope
  private static var validKeys: MappingShape { KeyExplorer.policy(.overrides) }

  private struct Setting: Sendable {
    var argument: String
    var key: String
    /// The setting as the text of a policy file.
    var text: String
  }

  /// Reads settings.
  ///
  /// - Parameter arguments: each is `KEY=VALUE`. If two have one key, the last one applies.
  /// - Throws: `SettingError` for an unknown key or a wrong value.
  public init(_ arguments: [String]) throws(SettingError) {
    try self.init(arguments, scope: .overrides)
  }

  /// Reads settings for one worker. A key that applies to all workers together is an error.
  public static func ofOneWorker(_ arguments: [String]) throws(SettingError) -> PolicySettings {
    try PolicySettings(arguments, scope: .worker)
  }

  init(_ arguments: [String], scope: PolicyReader.Scope) throws(SettingError) {
    var settings: [Setting] = []
    for argument in arguments { settings.append(try Self.setting(argument)) }
    self.settings = settings
    self.scope = scope
    // An error in a value is reported here, before any work is done.
    for setting in settings { _ = try Self.apply(setting, to: LifecyclePolicy(), scope) }
  }

  /// Returns the policy with these values, which are checked together.
  public func applied(to policy: LifecyclePolicy) throws(SettingError) -> LifecyclePolicy {
    try result(over: policy).policy
  }

  /// Returns a list of values with their origins, in which these values replace others.
  public func applied(
    to values: [EffectivePolicy.Value], of policy: LifecyclePolicy
  ) throws(SettingError) -> [EffectivePolicy.Value] {
    let result = try result(over: policy)
    let texts = Dictionary(
      PolicyFile.values(of: result.policy).map { ($0.path, $0.text) }
    ) { first, _ in first }
    return values.map { value in
      guard result.keys.contains(value.path), let text = texts[value.path] else { return value }
      return EffectivePolicy.Value(path: value.path, text: text, origin: Origin(layer: .option))
    }
  }

  private func result(
    over base: LifecyclePolicy
  ) throws(SettingError) -> (policy: LifecyclePolicy, keys: Set<String>) {
    var policy = base
    var readers: [(reader: MappingReader, setting: Setting)] = []
    for setting in settings {
      let step = try Self.apply(setting, to: policy, scope)
      policy = step.policy
      readers.append((step.reader, setting))
    }
    // A value alone may contradict another one that is set, too.
    PolicyChecks(
      policy: policy, readers: readers.map(\.reader), isOfWorker: scope == .worker
    ).run()
    for (reader, setting) in readers { try Self.check(reader.sink, setting) }
    return (policy, Set(readers.flatMap { $0.reader.positions.settings.keys }))
  }

  private static func apply(
    _ setting: Setting, to policy: LifecyclePolicy, _ scope: PolicyReader.Scope
  ) throws(SettingError) -> (policy: LifecyclePolicy, reader: MappingReader) {
    let sink = DiagnosticSink(source: SourceText(text: setting.text, file: "--set"))
    guard let reader = sink.topReader(of: "a setting") else {
      try check(sink, setting)
      throw SettingError(setting.argument, "can't be read")
    }
    let changed = PolicyReader(scope: scope).keys(reader, over: policy)
    try check(sink, setting)
    return (changed, reader)
  }

  private static func check(_ sink: DiagnosticSink, _ setting: Setting) throws(SettingError) {
    if let error = sink.firstError { throw SettingError(setting.argument, error) }
  }

  private static func setting(_ argument: String) throws(SettingError) -> Setting {
    let (written, value) = try SettingError.parts(of: argument)
    let key = String(written)
    // The reader has better error messages for the keys `name` and `extends`.
    guard !key.isEmpty, validKeys[key] != nil || key == "name" || key == "extends" else {
      throw SettingError(
        argument, "unknown key `\(shortened(key))`",
        suggestion: suggestion(for: key) ?? "`dormouse policy show` lists the keys")
    }
    var text = ""
    for (depth, component) in key.split(separator: ".").enumerated() {
      text += (depth == 0 ? "" : "\n") + String(repeating: "  ", count: depth) + "\(component):"
    }
    return Setting(argument: argument, key: key, text: "\(text) \(value)\n")
  }

  /// Suggests the nearest key, or a key with the same last component.
  private static func suggestion(for key: String) -> String? {
    let paths = validKeys.values()
    if let near = didYouMean(key, among: paths) { return near }
    func leaf(_ path: String) -> String { path.split(separator: ".").last.map(String.init) ?? path }
    guard let near = nearest(to: leaf(key), among: paths.map(leaf)) else { return nil }
    let meant = paths.filter { leaf($0) == near }
    return meant.isEmpty ? nil : "did you mean \(listed(meant))?"
  }
}

/// An error about a setting, with its reason.
public struct SettingError: Error, CustomStringConvertible {
  public var description: String

  init(_ argument: String, _ problem: String, suggestion: String? = nil) {
    description = "`\(shortened(argument))`: \(problem)" + (suggestion.map { "; \($0)" } ?? "")
  }

  init(_ argument: String, _ error: Diagnostic) {
    self.init(argument, error.message, suggestion: error.suggestion)
  }

  /// Returns the key and the value of an argument `KEY=VALUE`.
  static func parts(
    of argument: String
  ) throws(SettingError) -> (key: Substring, value: Substring) {
    guard let sign = argument.firstIndex(of: "=") else {
      throw SettingError(argument, "a value is missing", suggestion: "write `KEY=VALUE`")
    }
    let value = argument[sign...].dropFirst()
    guard !value.unicodeScalars.contains(where: SourceText.isLineEnd) else {
      throw SettingError(argument, "the value has a line break")
    }
    return (argument[..<sign], value)
  }
}

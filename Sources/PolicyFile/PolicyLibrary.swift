import Policy
import ShippedPolicies

/// Finds policies by name: `NAME.yaml` in one of some directories, or a policy that is built in.
public struct PolicyLibrary: Hashable, Sendable {
  /// The directories in the order in which they are searched. The first one that has a name
  /// decides. A directory that doesn't exist is skipped.
  public var directories: [String]

  public init(directories: [String]) { self.directories = directories }

  /// The library of the policies in the executable only.
  public static let builtIn = PolicyLibrary(directories: [])

  /// The policy of a configuration that names none.
  public static let usualPolicy = "standard"

  /// The names of all policies that can be loaded, sorted.
  public var names: [String] {
    Set(fileNames + ShippedPolicies.names).sorted()
  }

  /// The names of the policies that are files in the directories, sorted.
  public var fileNames: [String] {
    Set(names(in: "")).sorted()
  }

  /// The names of the files of rules that `adopt:` can name, sorted.
  public var ruleNames: [String] {
    Set(names(in: Self.rules) + ShippedPolicies.ruleNames).sorted()
  }

  /// Returns the names of the files in a directory below each directory of the library.
  private func names(in folder: String) -> [String] {
    directories.map { folder.isEmpty ? $0 : FilePaths.resolve(folder, from: $0) }
      .flatMap(FileContents.names(in:))
      .filter { $0.hasSuffix(".yaml") && NameRule.allows($0) }.map(FilePaths.stem(of:))
  }

  /// Returns the file of a policy. `nil`: no directory has it.
  public func path(of name: String) -> String? { paths(of: name).first }

  /// Returns the files of a policy in all directories, in their order.
  ///
  /// - Parameter folder: the directory below them that has the file, with a slash at its end.
  func paths(of name: String, in folder: String = "") -> [String] {
    // A name with a slash would lead out of the directories.
    guard NameRule.allows(name) else { return [] }
    return directories.map { FilePaths.resolve("\(folder)\(name).yaml", from: $0) }
      .filter(FileContents.exists)
  }

  /// Loads a policy by its name or its path. A text with a `/`, or with the ending `.yaml` or
  /// `.yml`, is a path.
  public func load(_ nameOrPath: String) -> ParseResult<LifecyclePolicy> {
    loadWithOrigins(nameOrPath).map(\.policy)
  }

  /// Loads a policy by its name or its path, with the line of each value.
  public func loadWithOrigins(_ nameOrPath: String) -> ParseResult<LoadedPolicy> {
    let chain = PolicyChain(library: self)
    if let path = Self.isPath(nameOrPath) ? nameOrPath : path(of: nameOrPath) {
      return chain.load(path: path)
    }
    // An executable without its files has these policies.
    if let text = ShippedPolicies.policy(nameOrPath) {
      return chain.parse(text: text, file: Self.builtInFile(nameOrPath), name: nameOrPath)
    }
    let (message, suggestion) = missing(nameOrPath)
    let diagnostic = Diagnostic(
      severity: .error, file: nameOrPath, position: nil, message: message, suggestion: suggestion)
    return ParseResult(value: nil, diagnostics: [diagnostic])
  }

  /// Returns the purpose of a policy: the line after its name at the beginning of its text. nil:
  /// there is none.
  public func summary(of name: String) -> String? {
    let text: String?
    if let path = path(of: name) {
      // A file that can't be read has no summary.
      text = try? FileContents.read(path).get()
    } else {
      text = ShippedPolicies.policy(name)
    }
    let lead = "# \(name): "
    guard let first = text?.split(separator: "\n").first, first.hasPrefix(lead) else { return nil }
    return String(first.dropFirst(lead.count))
  }

  /// The path that messages and origins show for a policy in the executable.
  static func builtInFile(_ name: String) -> String { "built-in/\(name).yaml" }

  private static let rules = "rules/"

  /// Returns `rules/NAME.yaml` of the first directory that has it, or the built-in one. nil: there
  /// is none.
  func rules(_ name: String) -> Result<SourceText, Diagnostic>? {
    if let path = paths(of: name, in: Self.rules).first {
      return FileContents.read(path).map { SourceText(text: $0, file: path) }
    }
    return ShippedPolicies.rules(name).map {
      .success(SourceText(text: $0, file: "built-in/rules/\(name).yaml"))
    }
  }

  /// Returns true if `load` uses the text as a path, and not as a name.
  public static func isPath(_ text: String) -> Bool {
    text.contains("/") || text.hasSuffix(".yaml") || text.hasSuffix(".yml")
  }

  /// Returns the error if no directory has a policy of that name.
  func missing(_ name: String) -> (message: String, suggestion: String) {
    let suggestion = Self.suggestion(instead: name, of: names)
    return ("there is no policy named `\(shortened(name))`", suggestion)
  }

  /// Suggests the name that is nearest to a wrong one, and lists all.
  static func suggestion(instead name: String, of names: [String]) -> String {
    let meant = didYouMean(name, among: names).map { $0 + " " } ?? ""
    return "\(meant)Available: \(names.joined(separator: ", "))"
  }
}

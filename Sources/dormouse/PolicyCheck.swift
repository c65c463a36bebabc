import Control
import Glibc
import Linux
import Policy
import PolicyFile

/// `policy check` and `policy show`: files and names, as a person gives them.
struct PolicyCheck {
  var library: PolicyLibrary
  /// What a configuration's `${VAR}` is expanded from.
  var environment: [String: String]

  static func ofThisProcess() -> PolicyCheck {
    PolicyCheck(
      library: PolicyLibrary(directories: DefaultPaths.ofThisProcess().policyDirectories),
      environment: ProcessEnvironment.current().variables)
  }

  /// Diagnostics to standard error, and `NAME: ok` to standard output; false with errors.
  func tell(_ nameOrPath: String) throws -> Bool {
    let (diagnostics, detail) = examine(nameOrPath)
    Self.complain(diagnostics)
    guard let detail else { return false }
    let warnings = diagnostics.filter { $0.severity == .warning }.count
    let noted = warnings == 0 ? "" : " (\(warnings) warning\(warnings == 1 ? "" : "s"))"
    try Output.line("\(escaped(nameOrPath)): ok\(detail)\(noted)")
    return true
  }

  /// Everything there is to say, and what to add to `ok`; nil with errors.
  private func examine(_ nameOrPath: String) -> ([Diagnostic], String?) {
    guard ConfigurationText.isConfiguration(nameOrPath) else {
      let result = policy(nameOrPath)
      return (result.diagnostics, result.value.map { _ in "" })
    }
    let result = ConfigurationFile.load(
      path: nameOrPath, library: library, environment: environment)
    let detail = result.value.map { value in
      let count = value.workers.count
      return ": \(count) worker\(count == 1 ? "" : "s"), policy \(value.policy.name)"
    }
    return (result.diagnostics, detail)
  }

  func policy(_ nameOrPath: String) -> ParseResult<LifecyclePolicy> {
    // A file without an ending, here: a person means that one, if no policy is called so.
    if library.path(of: nameOrPath) == nil, access(nameOrPath, F_OK) == 0 {
      return PolicyFile.load(path: nameOrPath)
    }
    return library.load(nameOrPath)
  }

  /// The way compilers do it, on standard error.
  static func complain(_ diagnostics: [Diagnostic]) {
    let color = Terminal.showsColorOnStandardError
    for diagnostic in diagnostics {
      Output.standardError((color ? colored(diagnostic) : diagnostic.rendered) + "\n")
    }
  }

  private static func colored(_ diagnostic: Diagnostic) -> String {
    let text = diagnostic.rendered
    let word = "\(diagnostic.severity.rawValue):"
    guard let range = text.firstRange(of: ": \(word) ") else { return text }
    let code = diagnostic.severity == .error ? "31" : "33"
    return "\(text[..<range.lowerBound]): \u{1B}[1;\(code)m\(word)\u{1B}[0m "
      + text[range.upperBound...]
  }
}

/// Tells a configuration from a policy by a look at its top: they have no key in common.
enum ConfigurationText {
  static func isConfiguration(_ path: String) -> Bool {
    var status = stat()
    // Only a file that can be read twice; anything else is left to those who read it for good.
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
      status.st_size <= 1 << 20, let text = try? readText(path)
    else { return false }
    // By its name too: with a typo in its only key it looks like nothing.
    let name = path.split(separator: "/").last
    return name == "dormouse.yaml" || name == "dormouse.yml" || looksLikeConfiguration(text)
  }

  static func looksLikeConfiguration(_ text: String) -> Bool {
    text.split(whereSeparator: \.isNewline).contains { line in
      guard let colon = line.firstIndex(of: ":") else { return false }
      let key = line[..<colon].filter { $0 != " " && $0 != "\"" && $0 != "'" }
      guard line.first != " " else { return false }
      switch key {
      case "workers", "policy_overrides", "state_directory", "socket": return true
      case "policy":
        // A mapping would be a whole policy, one level too deep.
        let value = line[line.index(after: colon)...].drop { $0 == " " }
        return value.first.map { $0 != "{" && $0 != "#" } ?? false
      default: return false
      }
    }
  }
}

extension Terminal {
  /// As `showsColor`, for diagnostics.
  static var showsColorOnStandardError: Bool {
    guard isatty(STDERR_FILENO) == 1 else { return false }
    let environment = ProcessEnvironment.current().variables
    return environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
  }
}

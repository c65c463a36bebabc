import Control
import Glibc
import Linux
import Policy
import PolicyFile

/// Reads files and names from the command line, for `policy check` and `policy show`.
struct PolicyCheck {
  var library: PolicyLibrary
  /// The variables for `${VAR}` in a configuration.
  var environment: [String: String]
  /// The number of errors in all files.
  private(set) var errors = 0
  private(set) var warnings = 0
  /// True if the results are collected in `report` and not printed.
  var json = false
  private var files: [PolicyCheckReport.File] = []
  private var diagnostics: [DiagnosticReport] = []

  var report: PolicyCheckReport {
    PolicyCheckReport(
      code: errors == 0 ? "valid" : "invalid", errors: errors, warnings: warnings, files: files,
      diagnostics: diagnostics)
  }

  static func ofThisProcess() -> PolicyCheck {
    PolicyCheck(
      library: PolicyLibrary(directories: DefaultPaths.ofThisProcess().policyDirectories),
      environment: ProcessEnvironment.current().variables)
  }

  /// Checks one file. Diagnostics are printed on standard error, and `NAME: ok` on standard output.
  mutating func report(_ nameOrPath: String) throws {
    if isDirectory(nameOrPath), !isConfiguration(nameOrPath) {
      return try reportAll(in: nameOrPath)
    }
    let (diagnostics, file) = examine(nameOrPath)
    let warnings = diagnostics.filter { $0.severity == .warning }.count
    self.warnings += warnings
    errors += diagnostics.count - warnings
    if json {
      files.append(file)
      self.diagnostics += diagnostics.map { DiagnosticReport($0) }
      return
    }
    Self.complain(diagnostics)
    guard file.code == "valid" else { return }
    let detail = file.workers.map { ": \(counted($0, "worker")), policy \(file.policy ?? "")" }
    let noted = warnings == 0 ? "" : " (\(counted(warnings, "warning")))"
    try Output.line("\(escaped(nameOrPath)): ok\(detail ?? "")\(noted)")
  }

  /// Checks a directory of policies.
  private mutating func reportAll(in directory: String) throws {
    let names = PolicyLibrary(directories: [directory]).fileNames
    guard !names.isEmpty else {
      errors += 1
      let text = "there is neither a dormouse.yaml nor a policy in it"
      if !json { return Output.standardError("\(escaped(directory)): error: \(text)\n") }
      files.append(.init(file: directory, code: "invalid"))
      return diagnostics.append(
        DiagnosticReport(
          code: "error", text: text, file: directory, line: nil, column: nil, suggestion: nil))
    }
    for name in names { try report("\(directory)/\(name).yaml") }
  }

  /// Prints the numbers of errors and warnings if there was an error, as compilers do.
  func printTotals() {
    guard errors > 0 else { return }
    let others = warnings > 0 ? " and \(counted(warnings, "warning"))" : ""
    Output.standardError("\(counted(errors, "error"))\(others)\n")
  }

  /// Returns all diagnostics of a file, and its result.
  private func examine(_ nameOrPath: String) -> ([Diagnostic], PolicyCheckReport.File) {
    func file(_ isValid: Bool) -> PolicyCheckReport.File {
      PolicyCheckReport.File(file: nameOrPath, code: isValid ? "valid" : "invalid")
    }
    guard isConfiguration(nameOrPath) else {
      let result = policy(nameOrPath)
      return (result.diagnostics, file(result.value != nil))
    }
    let result = configuration(nameOrPath)
    var report = file(result.value != nil)
    report.workers = result.value?.workers.count
    report.policy = result.value?.policy.name
    let check = result.value.map {
      WorkerCheck(configuration: $0, searchPath: environment["PATH"])
    }
    return (result.diagnostics + (check?.warnings ?? []), report)
  }

  func isConfiguration(_ nameOrPath: String) -> Bool {
    isDirectory(nameOrPath)
      ? ConfigurationFiles.exist(at: nameOrPath) : ConfigurationText.isConfiguration(nameOrPath)
  }

  /// Reads the configuration that a file belongs to. A file of a `conf.d` is only a part, so the
  /// whole configuration is read.
  func configuration(_ path: String) -> ParseResult<DaemonConfiguration> {
    ConfigurationFile.load(
      path: ConfigurationFiles.configuration(of: path), library: library, environment: environment)
  }

  func policy(_ nameOrPath: String) -> ParseResult<LoadedPolicy> {
    // A word without an extension is a file if no policy has that name and the file exists.
    if library.path(of: nameOrPath) == nil, fileExists(nameOrPath) {
      return PolicyFile.loadWithOrigins(path: nameOrPath, library: library)
    }
    return library.loadWithOrigins(nameOrPath)
  }

  /// Returns a policy by its name or path. Its problems are printed, and an error ends the verb.
  static func usable(_ nameOrPath: String) throws -> LifecyclePolicy {
    let result = ofThisProcess().policy(nameOrPath)
    complain(result.diagnostics)
    if let value = result.value { return value.policy }
    throw CommandFailure(.badConfiguration, "the policy \(escaped(nameOrPath)) can't be used")
  }

  private func isDirectory(_ path: String) -> Bool {
    library.path(of: path) == nil && fileStatus(of: path)?.isDirectory == true
  }

  /// Prints diagnostics on standard error in compilers' format.
  static func complain(_ diagnostics: [Diagnostic]) {
    let color = Terminal.showsColor(STDERR_FILENO)
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

extension DiagnosticReport {
  init(_ diagnostic: Diagnostic) {
    self.init(
      code: diagnostic.severity.rawValue, text: diagnostic.message, file: diagnostic.file,
      line: diagnostic.position?.line, column: diagnostic.position?.column,
      suggestion: diagnostic.suggestion)
  }
}

/// Distinguishes a configuration from a policy by the keys at its top level: they have none in
/// common.
enum ConfigurationText {
  static func isConfiguration(_ path: String) -> Bool {
    // Only a file that can be read twice is read here. The actual reader reports any other file.
    guard let status = fileStatus(of: path), status.isRegularFile,
      status.st_size <= 1 << 20, let text = try? readText(path)
    else { return false }
    // The file's name counts, too: with a typo in its only key, the text has no key that is
    // recognized.
    let name = path.split(separator: "/").last
    return name == "dormouse.yaml" || name == "dormouse.yml" || looksLikeConfiguration(text)
  }

  /// Returns whether a line has a `command`, which only workers have. A worker at the top level,
  /// without `workers:`, is a mistake in a configuration, so the file isn't a policy.
  private static func declaresCommand(_ line: Substring) -> Bool {
    let trimmed = line.drop { $0 == " " }
    guard !trimmed.hasPrefix("#") else { return false }
    return trimmed.hasPrefix("command:") || trimmed.contains("{ command:")
      || trimmed.contains("{command:")
  }

  static func looksLikeConfiguration(_ text: String) -> Bool {
    text.split(whereSeparator: \.isNewline).contains { line in
      if declaresCommand(line) { return true }
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

import ArgumentParser
import Control
import Glibc
import Linux
import PolicyFile

struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Convert another supervisor's file to dormouse.yaml.",
    discussion: """
      It reads a Procfile, a process-compose.yaml, Docker's compose.yaml, a supervisord.conf, \
      pm2's ecosystem file (JavaScript only with literal values: nothing is run), a \
      Quadlet of Podman (.container), and a service of systemd: a file, or with --unit the \
      machine's own, with its drop-ins.

      What can't be converted is a comment in the output. Run it in the directory of the file, and \
      then check the result with `dormouse policy check`. A file with errors isn't imported, and \
      no file is written.

      Examples:
        dormouse import Procfile -o dormouse.yaml
        dormouse import --unit redis-server
        dormouse policy check dormouse.yaml
      """)

  @Option(
    help: "The file's format; compose is Docker's, unit is systemd's. Default: by the file's name.")
  var format: ImportFormat?
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("Write to this file instead of standard output.", valueName: "file"),
    completion: .file(extensions: ["yaml", "yml"]))
  var output: String?
  @Flag(help: "Replace the file of --output if it exists.") var force = false
  @Option(
    help: ArgumentHelp(
      "A service that systemd knows, the system's or (as an ordinary user) your own.",
      valueName: "name"))
  var unit: String?
  @Flag(help: "Print JSON (docs/json.md). It has the text, unless --output is given.")
  var json = false
  @Argument(help: ArgumentHelp("The file to convert.", valueName: "file"), completion: .file())
  var path: String?

  func validate() throws {
    if force, output == nil { throw ValidationError("--force needs --output.") }
    if (path == nil) == (unit == nil) {
      throw ValidationError("Name a file, or a unit with --unit.")
    }
    if unit != nil, let format, format != .unit {
      throw ValidationError("--unit is a unit of systemd: leave --format out.")
    }
  }

  func run() throws {
    let source = try unit.map { try UnitSource(named: $0) }
    let file = path ?? source?.files[0].path ?? ""
    let directory = FilePaths.directory(of: file)
    if let output, !force, !isAbsent(output) {
      throw CommandFailure(
        .cannotCreate,
        "nothing written: \(escaped(output)) already exists; use --force to replace it")
    }
    let result = try source?.convert() ?? convert(file)
    if !json { PolicyCheck.complain(result.diagnostics) }
    guard let imported = result.value else {
      if json {
        try Output.json(
          ImportReport(
            code: "not_imported", diagnostics: result.diagnostics.map { DiagnosticReport($0) }))
      }
      throw CommandFailure(
        .badConfiguration, "\(escaped(file)) was not imported: fix the errors above")
    }
    if let output {
      // The file is written under another name and renamed: an earlier file stays whole if this
      // fails.
      try PictureFile(output, isPrivate: Self.hasSecrets(directory)).write(imported.text)
    } else if !json {
      try Output.write(imported.text)
    }
    let errors = errors(of: imported.text, in: source == nil ? directory : ".")
    if json {
      return try Output.json(
        ImportReport(
          code: "imported", configuration: output == nil ? imported.text : nil, output: output,
          workers: imported.workers, notes: imported.notes,
          diagnostics: (result.diagnostics + errors).map { DiagnosticReport($0) }))
    }
    if imported.notes > 0 {
      Output.standardError(
        "\(counted(imported.workers, "worker")); \(counted(imported.notes, "note")) on what is "
          + "different, in the comments\n")
    }
    guard !errors.isEmpty else { return }
    Output.standardError("The daemon can't read the result until these errors are fixed:\n")
    PolicyCheck.complain(errors)
  }

  /// Returns true if the new file may have values of a `.env` in it that not every user may read.
  private static func hasSecrets(_ directory: String) -> Bool {
    fileStatus(of: "\(directory)/.env").map { $0.st_mode & 0o004 == 0 } ?? false
  }

  private func convert(_ file: String) throws -> ParseResult<ImportedConfiguration> {
    let text = try UnitSource.text(of: file)
    let directory = FilePaths.directory(of: file)
    guard let format = format ?? ImportFormat(fileName: FilePaths.name(of: file), text: text) else {
      throw CommandFailure(
        .badConfiguration,
        "\(escaped(file)) was not imported: no format has such a name; name one with "
          + "--format, or write the workers by hand")
    }
    if format == .supervisor {
      return SupervisorImport.convert(
        text: text, file: file, directory: absolute(directory) ?? directory)
    }
    if format == .unit { return UnitSource(file: file, text: text).convert() }
    if format == .pm2 { return PM2Import.convert(text: text, file: file) }
    if format == .quadlet {
      return QuadletImport.convert(text: text, file: file) { !isAbsent($0) }
    }
    let (environment, warning) = Self.readEnvironment("\(directory)/.env")
    var result =
      switch format {
      case .processCompose:
        ProcessComposeImport.convert(text: text, file: file, environmentFile: environment)
      case .compose:
        ComposeImport.convert(
          text: text, file: file, environmentFile: environment, isProgram: isProgram(directory))
      default: ProcfileImport.convert(text: text, file: file, environmentFile: environment)
      }
    if let warning { result.diagnostics.append(warning) }
    return result
  }

  /// Returns a check for programs. It searches as a daemon with this process's PATH does.
  private func isProgram(_ directory: String) -> (String) -> Bool {
    let path = ProcessEnvironment.current().variables["PATH"]
    return { name in
      do throws(CommandLookupError) {
        _ = try locateCommand(name, searchPath: path, directory: directory)
        return true
      } catch { return false }
    }
  }

  /// Reads an `.env` file. If it is absent or unreadable, the programs that read it continue
  /// without it, and so does this.
  private static func readEnvironment(_ path: String) -> (text: String?, Diagnostic?) {
    do { return (try readText(path), nil) } catch {
      guard !isAbsent(path) else { return (nil, nil) }
      let warning = Diagnostic(
        severity: .warning, file: path, position: nil,
        message: "it can't be read, and its variables are missing here: \(error)",
        suggestion: "make it readable, and import again")
      return (nil, warning)
    }
  }

  /// Returns the errors that `policy check` will report, such as an unset variable or a missing
  /// file.
  private func errors(of text: String, in directory: String) -> [Diagnostic] {
    let check = PolicyCheck.ofThisProcess()
    return ConfigurationFile.parse(
      text: text, file: "\(directory)/dormouse.yaml", library: check.library,
      environment: check.environment
    ).errors
  }
}

extension ImportFormat: ExpressibleByArgument {}

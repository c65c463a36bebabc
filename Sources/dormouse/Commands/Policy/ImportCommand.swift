import ArgumentParser
import Control
import Glibc
import Linux
import PolicyFile

struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Convert a Procfile, process-compose.yaml or compose.yaml to dormouse.yaml.",
    discussion: """
      What can't be converted is a comment in the output. Run it in the directory of the file, and then \
      check the result with `dormouse policy check`. A file with errors isn't imported, and no file is \
      written.

      Examples:
        dormouse import Procfile -o dormouse.yaml
        dormouse policy check dormouse.yaml
      """)

  enum Format: String, ExpressibleByArgument, CaseIterable {
    case procfile
    case processCompose = "process-compose"
    case compose
  }

  @Option(help: "The file's format; compose is Docker's. Default: by the file's name.")
  var format: Format?
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("Write to this file instead of standard output.", valueName: "file"),
    completion: .file(extensions: ["yaml", "yml"]))
  var output: String?
  @Flag(help: "Replace the file of --output if it exists.") var force = false
  @Flag(help: "Print JSON (docs/json.md). It has the text, unless --output is given.")
  var json = false
  @Argument(help: ArgumentHelp("The file to convert.", valueName: "file"), completion: .file())
  var file: String

  func validate() throws {
    if force, output == nil { throw ValidationError("--force needs --output.") }
  }

  func run() throws {
    let text: String
    do {
      text = try readText(file)
    } catch {
      throw CommandFailure(exit: .badConfiguration, text: "\(error)")
    }
    if let output, !force, !isAbsent(output) {
      throw CommandFailure(
        exit: .cannotCreate,
        text: "nothing written: \(escaped(output)) already exists; use --force to replace it")
    }
    let result = convert(text)
    if !json { PolicyCheck.complain(result.diagnostics) }
    guard let imported = result.value else {
      if json {
        try Output.json(
          ImportReport(
            code: "not_imported", diagnostics: result.diagnostics.map { DiagnosticReport($0) }))
      }
      throw CommandFailure(
        exit: .badConfiguration, text: "\(escaped(file)) was not imported: fix the errors above")
    }
    if let output {
      // Written under another name and renamed: an earlier file stays whole if this fails.
      try PictureFile(output).write(imported.text)
    } else if !json {
      try Output.write(imported.text)
    }
    let errors = errors(of: imported.text)
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

  private func convert(_ text: String) -> ParseResult<Imported> {
    let name = file.split(separator: "/").last.map(String.init) ?? file
    switch format ?? Self.format(ofFileNamed: name) {
    case .processCompose: return ProcessComposeImport.convert(text: text, file: file)
    case .compose: return ComposeImport.convert(text: text, file: file)
    case .procfile:
      // If the file is absent or unreadable, foreman continues without it, too.
      let environment = try? readText("\(directory)/.env")
      return ProcfileImport.convert(text: text, file: file, environmentFile: environment)
    }
  }

  private static func format(ofFileNamed name: String) -> Format {
    guard name.hasSuffix(".yaml") || name.hasSuffix(".yml") else { return .procfile }
    let isDockers = name.hasPrefix("compose.") || name.hasPrefix("docker-compose")
    return isDockers ? .compose : .processCompose
  }

  private var directory: String {
    guard let slash = file.lastIndex(of: "/") else { return "." }
    return slash == file.startIndex ? "/" : String(file[..<slash])
  }

  /// The errors that `policy check` will report, such as an unset variable or a missing file.
  private func errors(of text: String) -> [Diagnostic] {
    let check = PolicyCheck.ofThisProcess()
    return ConfigurationFile.parse(
      text: text, file: "\(directory)/dormouse.yaml", library: check.library,
      environment: check.environment
    ).errors
  }
}

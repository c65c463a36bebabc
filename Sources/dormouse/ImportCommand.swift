import ArgumentParser
import Control
import Glibc
import Linux
import PolicyFile

struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Print a dormouse.yaml for the processes of a Procfile or process-compose.yaml.",
    discussion: """
      What can't be taken over stands in comments. `dormouse import Procfile > dormouse.yaml`, in \
      the directory of the file, and then `dormouse policy check dormouse.yaml`.
      """)

  enum Format: String, ExpressibleByArgument, CaseIterable {
    case procfile
    case processCompose = "process-compose"
  }

  @Option(help: "procfile or process-compose. Default: by the file's name.") var format: Format?
  @Argument(help: ArgumentHelp("The file.", valueName: "file")) var file: String

  func run() throws {
    let text: String
    do {
      text = try readText(file)
    } catch {
      throw CommandFailure(exit: .badConfiguration, text: "\(error)")
    }
    let result = convert(text)
    PolicyCheck.complain(result.diagnostics)
    guard let imported = result.value else {
      throw CommandFailure(
        exit: .badConfiguration, text: "\(escaped(file)) can't be imported before it is mended")
    }
    try Output.write(imported.text)
    if imported.notes > 0 {
      Output.standardError(
        "\(counted(imported.workers, "worker")); \(counted(imported.notes, "note")) on what is "
          + "different, in the comments\n")
    }
    tellErrors(of: imported.text)
  }

  private func convert(_ text: String) -> ParseResult<Imported> {
    let name = file.split(separator: "/").last.map(String.init) ?? file
    let isYAML = name.hasSuffix(".yaml") || name.hasSuffix(".yml")
    switch format ?? (isYAML ? .processCompose : .procfile) {
    case .processCompose: return ProcessComposeImport.convert(text: text, file: file)
    case .procfile:
      let hasFile = access("\(directory)/.env", F_OK) == 0
      return ProcfileImport.convert(text: text, file: file, hasEnvironmentFile: hasFile)
    }
  }

  private var directory: String {
    guard let slash = file.lastIndex(of: "/") else { return "." }
    return slash == file.startIndex ? "/" : String(file[..<slash])
  }

  /// What `policy check` will say: a variable that isn't set here, a file that isn't there.
  private func tellErrors(of text: String) {
    let check = PolicyCheck.ofThisProcess()
    let result = ConfigurationFile.parse(
      text: text, file: "\(directory)/dormouse.yaml", library: check.library,
      environment: check.environment)
    guard !result.errors.isEmpty else { return }
    Output.standardError("As a configuration, this has to be mended:\n")
    PolicyCheck.complain(result.errors)
  }
}

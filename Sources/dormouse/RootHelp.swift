import ArgumentParser
import Control

/// The text of `dormouse --help`: the usage, the verbs that a new user needs, then all verbs by
/// group. The manual has everything else, such as exit codes (`scripts/manual`).
enum RootHelp {
  /// Returns whether ArgumentParser would print the help about all verbs for these arguments.
  static func isWanted(by arguments: ArraySlice<String>) -> Bool {
    arguments.isEmpty || arguments == ["--help"] || arguments == ["-h"] || arguments == ["help"]
  }

  private static let first: [any ParsableCommand.Type] = [
    DoctorCommand.self, DaemonCommand.self, RunCommand.self, ProcessesCommand.self,
    HibernateCommand.self, WakeCommand.self, ExplainCommand.self,
  ]

  /// - Parameter width: The width of the terminal in columns.
  static func text(width: Int) -> String {
    let configuration = DormouseCommand.configuration
    var lines = ["USAGE: dormouse <verb> [<options>] [<worker> ...]", ""]
    lines += wrapped(configuration.abstract, to: width) + ["", "To begin with:"]
    lines += first.flatMap { row($0, width) }
    for group in configuration.groupedSubcommands {
      lines += ["", "\(group.name):"] + group.subcommands.flatMap { row($0, width) }
    }
    lines += [""]
    lines += wrapped(
      "`dormouse <verb> --help` has a verb's options, `man dormouse` all of them, with exit codes "
        + "and files.",
      to: width)
    return lines.joined(separator: "\n") + "\n"
  }

  private static func row(_ command: any ParsableCommand.Type, _ width: Int) -> [String] {
    let name = padded("  \(command.configuration.commandName ?? "")", to: 14)
    return hanging(name, command.configuration.abstract, to: width, minColumns: 24)
  }
}

import ArgumentParser
import Control

/// ArgumentParser's message about wrong arguments, with no line wider than the terminal.
enum UsageError {
  /// The result is nil if `error` isn't about wrong arguments.
  static func text(for error: any Error, width: Int) -> String? {
    guard DormouseCommand.exitCode(for: error) == .validationFailure else { return nil }
    let message = DormouseCommand.fullMessage(for: error, columns: VerbHelp.unlimited)
    if message.isEmpty { return nil }
    let lines = message.split(separator: "\n", omittingEmptySubsequences: false).flatMap { line in
      let lead = ["Error: ", "Help:  ", "Usage: ", "       "].first { line.hasPrefix($0) }
      guard let lead, ["Usage: ", "       "].contains(lead), width > lead.count else {
        return wrapped(String(line), to: width, indent: lead?.count ?? 2)
      }
      return VerbHelp.wrapped(
        usage: String(line.dropFirst(lead.count)), lead: lead, to: width)
    }
    return lines.joined(separator: "\n") + "\n"
  }
}

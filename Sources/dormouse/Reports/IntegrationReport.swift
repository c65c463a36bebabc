import Control
import Integrate

/// The output of `integrate --json`.
struct IntegrationReport: Codable, Hashable, Sendable {
  /// The code is `listed`, `planned`, `done`, `nothing_to_do`, or that of the first file that can't
  /// be changed.
  var code: String
  var text: String
  /// The arguments that are put before a command.
  var words: [String]
  var files: [File]
  /// The text to write by hand into the configuration of hosts that are configured by a program.
  var snippets: [Snippet]

  struct File: Codable, Hashable, Sendable {
    var host: String
    var path: String
    /// Why the file can't be read or changed.
    var problem: CodedText?
    /// The line of `problem`, if it concerns a position in the file. It counts from 1.
    var line: Int?
    /// The column of `problem`. It counts from 1.
    var column: Int?
    var isChanged: Bool
    /// The lines that changed, or that would change (`--dry-run`).
    var difference: [String]
    var servers: [Server]
  }

  struct Server: Codable, Hashable, Sendable {
    var name: String
    /// The project that it belongs to, if the file has several.
    var project: String?
    /// The state is `not_wrapped`, `wrapped`, `newly_wrapped` or `unwrapped`.
    var state: String
    /// The command without `dormouse wrap`; empty if none is known.
    var command: [String]
    /// Why its command stays as it is.
    var reason: CodedText?
  }

  struct Snippet: Codable, Hashable, Sendable {
    var host: String
    var text: String
  }
}

extension FileOutcome {
  var report: IntegrationReport.File {
    var position: (line: Int, column: Int)?
    if case .syntax(let line, let column, _) = problem { position = (line, column) }
    return IntegrationReport.File(
      host: host.rawValue, path: path, problem: problem.map { CodedText($0.code, $0.text) },
      line: position?.line, column: position?.column, isChanged: isChanged, difference: difference,
      servers: servers.map { server in
        IntegrationReport.Server(
          name: server.name, project: server.project, state: server.state.rawValue,
          command: server.command,
          reason: server.refusal.map { CodedText($0.code, $0.text) })
      })
  }
}

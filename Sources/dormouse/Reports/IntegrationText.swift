import Control
import Integrate

/// The text about files and servers that `dormouse integrate` prints.
struct IntegrationText {
  var home: String
  /// The width of the terminal in columns; nil if there is no terminal.
  var width: Int?
  var color: Bool

  /// One table for all files. Each file has a line, with its servers below it.
  func lines(_ files: [FileOutcome]) -> [String] {
    files.enumerated().flatMap { index, file in
      (index > 0 ? [""] : []) + lines(file)
    }
  }

  private func lines(_ file: FileOutcome) -> [String] {
    var lines = ["\(file.host.rawValue): \(short(file.path))"]
    if let problem = file.problem { lines += wrapped("  \(sentence(problem))", to: width) }
    if file.servers.isEmpty { return lines }
    var table = Table(columns: [
      .init(title: "  SERVER", minWidth: 20), "STATE", "COMMAND, OR WHY NOT",
    ])
    table.rows = file.servers.map { server in
      [
        .init("  " + name(server)), .init(Self.label(server.state)),
        .init(server.refusal?.text ?? command(server)),
      ]
    }
    return lines + table.lines(width: width, color: color, wrapsLast: width != nil)
  }

  private func sentence(_ problem: FileProblem) -> String {
    if case .syntax(let line, let column, let reason) = problem {
      return "line \(line), column \(column): \(escaped(reason))"
    }
    return "this file \(problem.text)"
  }

  private func name(_ server: ServerOutcome) -> String {
    escaped(server.name) + (server.project.map { " in \(short($0))" } ?? "")
  }

  /// The command. A terminal shows only its beginning.
  private func command(_ server: ServerOutcome) -> String {
    let text = shellText(server.command)
    return width == nil ? text : shortened(text, to: 120)
  }

  private static func label(_ state: ServerOutcome.State) -> String {
    switch state {
    case .notWrapped: "not wrapped"
    case .wrapped: "wrapped"
    case .newlyWrapped: "wrapped now"
    case .unwrapped: "unwrapped"
    }
  }

  /// The path with `~` for the home directory, escaped.
  func short(_ path: String) -> String {
    let isInside = home.count > 1 && path.hasPrefix(home + "/")
    return escaped(isInside ? "~" + path.dropFirst(home.count) : path)
  }

  /// The changed lines, as `diff -u` prints them.
  func difference(_ file: FileOutcome) -> [String] {
    let lines = file.difference
    if lines.isEmpty { return [] }
    let path = short(file.path)
    return ["--- \(path)", "+++ \(path)"] + lines
  }
}

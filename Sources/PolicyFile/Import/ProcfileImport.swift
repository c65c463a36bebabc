/// Imports a Procfile, as foreman, honcho, overmind and Heroku read it.
public enum ProcfileImport {
  /// Converts a file.
  ///
  /// - Parameters:
  ///   - file: the Procfile's name.
  ///   - environmentFile: the text of the `.env` beside it, which foreman loads, too. `nil`: there
  ///     is none.
  public static func convert(
    text: String, file: String, environmentFile: String?
  ) -> ParseResult<ImportedConfiguration> {
    let sink = DiagnosticSink(source: SourceText(text: text, file: file))
    var result = ImportedFile(source: FilePaths.name(of: file))
    var first: [String: Int] = [:]
    let ports = Ports(environmentFile: environmentFile)
    let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    for (index, line) in lines.enumerated() {
      let remainder = line.drop { $0.isWhitespace }
      guard let start = remainder.first, start != "#" else { continue }
      let position = Position(line: index + 1, column: line.count - remainder.count + 1)
      guard let colon = remainder.firstIndex(of: ":") else {
        sink.error(at: position, "is not `name: command`")
        continue
      }
      let name = String(remainder[..<colon])
      let command = String(remainder[colon...].dropFirst().drop { $0.isWhitespace })
      guard sink.allows(name, of: "a worker", at: position) else { continue }
      if command.isEmpty || command.contains("\0") {
        sink.error(at: position, "`\(shortened(name))` has no command")
      } else if let earlier = first[name] {
        sink.error(
          at: position, "`\(shortened(name))` is given twice; the first is in line \(earlier)")
      } else {
        first[name] = index + 1
        result.workers.append(
          worker(
            name, command, port: ports[result.workers.count],
            hasEnvironmentFile: environmentFile != nil))
      }
    }
    return sink.result(result.rendered())
  }

  private static func worker(
    _ name: String, _ command: String, port: YAMLText, hasEnvironmentFile: Bool
  ) -> ImportedWorker {
    var worker = ImportedWorker(name: name)
    worker.keys.append(("command", ShellLine.command(command, shell: ["sh", "-c"])))
    if hasEnvironmentFile { worker.keys.append(("env_file", .text(".env"))) }
    // PORT is set whether or not the command names it. Programs such as Puma read it themselves.
    worker.keys.append(("environment", .mapping([("PORT", port)])))
    if name == "release" {
      worker.notes.append(
        "Heroku runs this once a deployment; Dormouse doesn't start it automatically.")
      worker.keys.append(("autostart", .plain("false")))
    }
    return worker
  }
}

/// The ports as foreman assigns them: the PORT of `.env`, or 5000, and 100 more for each further
/// line.
private struct Ports {
  private var base: Int?

  init(environmentFile: String?) {
    // Errors in the file are reported when the result is checked, because it is the workers'
    // `env_file`.
    let variables = EnvironmentFile.parse(environmentFile ?? "", file: ".env").value
    base = variables?["PORT"].flatMap { Int($0) }.flatMap { (1...65_535).contains($0) ? $0 : nil }
  }

  subscript(index: Int) -> YAMLText {
    // The PORT of the caller's environment would change only the first port, so the others are
    // written as numbers.
    if base == nil, index == 0 { return .text("${PORT:-5000}") }
    return .plain("\((base ?? 5_000) + 100 * index)")
  }
}

/// A Procfile, as foreman, honcho, overmind and Heroku read it.
public enum ProcfileImport {
  /// - Parameters:
  ///   - file: the Procfile's name.
  ///   - hasEnvironmentFile: there is a `.env` beside it, which foreman loads, too.
  public static func convert(
    text: String, file: String, hasEnvironmentFile: Bool
  ) -> ParseResult<Imported> {
    let sink = DiagnosticSink(source: SourceText(text: text, file: file))
    var result = ImportedFile(source: FilePaths.name(of: file))
    var first: [String: Int] = [:]
    let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    for (index, line) in lines.enumerated() {
      let rest = line.drop { $0.isWhitespace }
      guard let start = rest.first, start != "#" else { continue }
      let position = Position(line: index + 1, column: line.count - rest.count + 1)
      guard let colon = rest.firstIndex(of: ":") else {
        sink.error(at: position, "isn't `name: command`")
        continue
      }
      let name = String(rest[..<colon])
      let command = String(rest[colon...].dropFirst().drop { $0.isWhitespace })
      if !isName(name) {
        sink.error(
          at: position, "`\(shortened(name))` can't be a worker's name",
          suggestion: "a name has \(nameRule)")
      } else if command.isEmpty || command.contains("\0") {
        sink.error(at: position, "`\(shortened(name))` has no command")
      } else if let earlier = first[name] {
        sink.error(
          at: position, "`\(shortened(name))` stands twice; the first is in line \(earlier)")
      } else {
        first[name] = index + 1
        result.workers.append(
          worker(
            name, command, index: result.workers.count, hasEnvironmentFile: hasEnvironmentFile))
      }
    }
    return sink.result(result.rendered())
  }

  private static func worker(
    _ name: String, _ command: String, index: Int, hasEnvironmentFile: Bool
  ) -> ImportedWorker {
    var worker = ImportedWorker(name: name)
    worker.keys.append(("command", ShellLine.command(command, shell: ["sh", "-c"])))
    if hasEnvironmentFile { worker.keys.append(("env_file", .text(".env"))) }
    if command.contains("PORT") {
      // foreman's: 5000, and 100 more for each further line.
      let port = 5_000 + 100 * index
      worker.keys.append(
        (
          "environment",
          .mapping([("PORT", index == 0 ? .text("${PORT:-5000}") : .plain("\(port)"))])
        ))
    }
    if name == "release" {
      worker.notes.append("Heroku runs this once a deployment: it isn't started by itself here.")
      worker.keys.append(("autostart", .plain("false")))
    }
    return worker
  }
}

import ArgumentParser
import Control

struct JetsamCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "jetsam",
    abstract: "Show which worker was terminated for lack of memory, and why.",
    discussion: """
      A jetsam report has all workers as they were when memory ran out, in the order of \
      termination. There is one report for each burst of terminations.
      """)
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: ArgumentHelp("The id of a report. Default: the newest.", valueName: "id"))
  var report: String?

  func run() throws {
    var daemon = try connection.connect()
    let response = try daemon.ask(.jetsam) { $0.report = report }
    guard let record = response.jetsam else {
      if json { return try Output.json(CodedText("no_report", response.text)) }
      return try Output.line(escaped(response.text))
    }
    if json { return try Output.json(record) }
    try Output.show { renderJetsam(record, width: $0, color: $1) }
    let others = (response.reports ?? []).filter { $0 != record.id }
    if !others.isEmpty {
      try Output.line("other reports: \(others.map(escaped).joined(separator: ", "))")
    }
  }
}

import ArgumentParser
import Control
import JSONLines

struct ProcessesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ps", abstract: "List the workers: state, memory, and why.",
    discussion: """
      With names or patterns (`ps 'bot*'`, as in a shell), only these. Exit code 3 when a name or \
      pattern fits no worker. In a terminal that is too narrow for the reasons, BAND, PID and IMAGE are \
      left out.
      """)
  @OptionGroup var connection: ConnectionOptions
  @Flag(help: "As JSON.") var json = false
  @Flag(help: "Only the names, a line each.") var names = false
  @Argument(help: ArgumentHelp("Names or patterns.", valueName: "name"), completion: .workers)
  var patterns: [String] = []

  func validate() throws {
    if json, names { throw ValidationError("--json or --names, one of the two.") }
  }

  func run() throws {
    var daemon = try connection.connect()
    let response = try daemon.ask(.ps)
    var workers = response.workers ?? []
    if !patterns.isEmpty { workers = try WorkerPatterns(patterns).workers(among: workers) }
    if names { return try Output.write(workers.map { escaped($0.name) + "\n" }.joined()) }
    if json { return try Output.json(Listing(daemon: response.daemon, workers: workers)) }
    try Output.write(
      renderProcessTable(
        workers, daemon: response.daemon, width: Terminal.width, color: Terminal.showsColor))
  }
}

/// The JSON of `ps` and `status`.
private struct Listing: Encodable {
  var daemon: DaemonReport?
  var workers: [WorkerReport]?
}

struct StatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show one worker in detail, or the daemon and the machine.")
  @OptionGroup var connection: ConnectionOptions
  @Flag(help: "As JSON.") var json = false
  @Flag(help: "Only what the worker shows of itself: its text, or an image's bytes.")
  var snapshot = false
  @Argument(help: "A worker; none for the daemon.", completion: .workers) var name: String?

  func validate() throws {
    if snapshot, json || name == nil {
      throw ValidationError("--snapshot takes a worker, and no --json.")
    }
  }

  func run() throws {
    var daemon = try connection.connect()
    let response = try daemon.ask(.status, worker: name, withSnapshot: snapshot)
    if snapshot, let name {
      return try writeSnapshot(response.workers?.first?.snapshot, of: name)
    }
    if let name {
      guard let worker = response.workers?.first else { throw CommandFailure.noReport(of: name) }
      if json { return try Output.json(worker) }
      try Output.write(
        renderWorkerStatus(worker, width: Terminal.width, color: Terminal.showsColor))
    } else {
      guard let report = response.daemon else { throw CommandFailure.noReport(of: "the daemon") }
      if json { return try Output.json(Listing(daemon: report, workers: response.workers)) }
      try Output.write(
        renderDaemonStatus(
          report, workers: response.workers, width: Terminal.width, color: Terminal.showsColor))
    }
  }
}

extension StatusCommand {
  private func writeSnapshot(_ snapshot: SnapshotReport?, of name: String) throws {
    guard let snapshot else {
      throw CommandFailure(exit: .notDone, text: "\(escaped(name)) has reported no snapshot")
    }
    if let text = snapshot.text {
      // At a terminal, text from a worker must not move the cursor.
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
      let safe = lines.map { escaped(String($0)) }.joined(separator: "\n")
      return try Output.line(Terminal.isOutput ? safe : text)
    }
    if Terminal.isOutput {
      let what = "\(escaped(snapshot.mime)), \(sizeText(snapshot.size))"
      throw CommandFailure(
        exit: .notDone, text: "its snapshot is an image (\(what)); redirect the output to a file")
    }
    try Output.write(Base64.decode(snapshot.data ?? "") ?? [])
  }
}

struct JetsamCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "jetsam", abstract: "Show which worker was terminated for lack of memory, and why."
  )
  @OptionGroup var connection: ConnectionOptions
  @Flag(help: "As JSON.") var json = false
  @Argument(help: ArgumentHelp("Which report; none for the newest.", valueName: "id"))
  var report: String?

  func run() throws {
    var daemon = try connection.connect()
    let response = try daemon.ask(.jetsam, report: report)
    if json {
      guard let record = response.jetsam else {
        return try Output.json(CodedText("no_report", response.text))
      }
      return try Output.json(record)
    }
    guard let record = response.jetsam else { return try Output.line(escaped(response.text)) }
    try Output.write(
      renderJetsam(record, width: Terminal.width, color: Terminal.showsColor))
    let others = (response.reports ?? []).filter { $0 != record.id }
    if !others.isEmpty {
      try Output.line("other reports: \(others.map(escaped).joined(separator: ", "))")
    }
  }
}

extension CommandFailure {
  static func noReport(of what: String) -> CommandFailure {
    CommandFailure(
      exit: .notDone, text: "the daemon sent no report about \(escaped(what))")
  }
}

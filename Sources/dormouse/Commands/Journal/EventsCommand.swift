import ArgumentParser
import Control
import Daemon
import Journal

struct EventsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "events", abstract: "Show past events; -f follows new ones.",
    discussion: """
      Events are changes of state with their cause and cost, requests to free memory and what they \
      freed, changes of the pressure level, terminations for memory, reloads, refusals and \
      failures. Past events are read from the daemon's journal; with --follow the daemon sends new \
      ones.

      Examples:
        dormouse events --worker web --since 1h
        dormouse events -f
      """)
  @Flag(name: .shortAndLong, help: "Print new events as they happen.") var follow = false
  @Option(
    help: ArgumentHelp("Show only this worker's events.", valueName: "name"), completion: .workers)
  var worker: String?
  @Option(
    help: ArgumentHelp(
      "Begin this long ago, such as 90s, 30m, 12h, 7d or 2w. A bare number is in seconds.",
      valueName: "time"))
  var since: Since?
  @Option(
    name: [.customShort("n"), .long],
    help: ArgumentHelp(
      "Show this many from the end, or `all`. Default: 50, with --since all.",
      valueName: "count"))
  var lines: LineCount?
  @Option(
    help: ArgumentHelp(
      "Read this journal, a directory or a file, and ask no daemon.", valueName: "path"),
    completion: .file())
  var journal: String?
  @Flag(help: "Print JSON, an object for each event (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions

  func validate() throws {
    if follow, journal != nil {
      throw ValidationError("--follow needs the daemon, and --journal reads files alone")
    }
  }

  func run() throws {
    let clock = Clock()
    if let journal {
      return try showPast(of: try JournalFiles.segments(at: journal), until: nil, clock)
    }
    if !follow, connection.socket == nil, !connection.hasDaemon {
      return try showPast(of: try JournalFiles.ofLastDaemon("showing"), until: nil, clock)
    }
    var daemon = try connection.connect()
    if let worker { _ = try daemon.ask(.status, worker: worker) }
    let location = try daemon.journal(follow: follow, worker: worker)
    if let directory = location.directory {
      let end = location.run.map { ($0, location.at) }
      // There may be no segment, if none could be written yet; the daemon's log has the reason.
      let segments = (try? JournalDirectory(path: directory).segments()) ?? []
      try showPast(of: segments, until: end, clock)
    } else if !follow || since != nil {
      Output.complain("no past events: the configuration has `journal: { enabled: false }`")
    }
    while follow { try show(try daemon.client.nextEvent(), clock) }
  }

  private func showPast(
    of segments: [JournalSegment], until end: (run: String, at: Int64)?, _ clock: Clock
  ) throws {
    var history = History(
      segments: segments, worker: worker, since: since.map { Clock.now() - $0.duration })
    history.end = end
    let limit = lines.map(\.limit) ?? (since == nil ? 50 : nil)
    let events = history.events(limit: limit)
    JournalFiles.complain(history.problems.filter { !$0.isHarmless })
    for event in events { try show(event, clock) }
  }

  private func show(_ event: EventRecord, _ clock: Clock) throws {
    if json { return try Output.json(event) }
    try Output.show { renderEvent(event, clock: clock(event.time), width: $0, color: $1) }
  }
}

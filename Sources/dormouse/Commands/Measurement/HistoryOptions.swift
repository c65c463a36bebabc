import ArgumentParser
import Control
import Deciding
import Journal

/// The part of a journal that a history is made from.
struct HistorySpan {
  /// A directory or a file; nil for the journal of the running daemon, or else of the last one.
  var journal: String?
  var since: Since?

  /// Reads the history. A terminal shows the progress, and damaged parts are reported.
  func read(_ connection: ConnectionOptions, minLength: Duration) throws -> RecordedHistory {
    var segments = try segments(connection)
    let begin = since.map { Clock.now() - $0.duration }
    if let begin {
      // One segment before the time is read as well: it has the workers' states.
      segments.removeFirst(JournalFiles.firstSegment(at: begin, of: segments))
    }
    var reader = HistoryReader(since: begin)
    let history = reader.read(segments) { Progress.show("reading the journal", $0) }
    Progress.clear()
    JournalFiles.complain(history.problems.filter { !$0.isHarmless })
    do throws(HistoryProblem) { try history.check(minLength: minLength) } catch {
      let hint = since == nil ? "" : "; a longer --since takes more of it"
      throw CommandFailure(.notDone, "\(error)\(hint)")
    }
    return history
  }

  private func segments(_ connection: ConnectionOptions) throws -> [JournalSegment] {
    if let journal { return try JournalFiles.segments(at: journal) }
    if !connection.isNamed, !connection.hasDaemon {
      return try JournalFiles.ofLastDaemon("reading")
    }
    var daemon = try connection.connect()
    return try JournalFiles.segments(at: daemon.journalDirectory())
  }
}

/// The options of `simulate --journal`.
struct HistoryOptions: ParsableArguments {
  @Flag(
    help: "Make the trace of the uses in a journal: the running daemon's, or that of [<journal>].")
  var journal = false
  @Option(
    help: ArgumentHelp(
      "With --journal: begin this long ago, such as 12h, 7d or 2w. Default: all of it.",
      valueName: "time"))
  var since: Since?
  @Argument(
    help: ArgumentHelp("With --journal: a journal's directory, or a file.", valueName: "journal"),
    completion: .file())
  var path: String?

  func validate(_ connection: ConnectionOptions, isElsewhere: Bool) throws {
    if journal, isElsewhere {
      throw ValidationError("--journal excludes --generate, --trace, --workers and --check.")
    }
    if journal { return }
    if let path {
      throw ValidationError(
        "Unexpected argument '\(escaped(path))': --trace FILE reads a trace, --journal FILE a "
          + "daemon's journal.")
    }
    if since != nil || connection.isNamed {
      throw ValidationError("--since, --socket and --project need --journal.")
    }
  }

  /// Reads the history, if `--journal` is given. A second of history is enough to try it: the
  /// result has its length at the top.
  func read(_ connection: ConnectionOptions) throws -> RecordedHistory? {
    guard journal else { return nil }
    return try HistorySpan(journal: path, since: since).read(connection, minLength: .seconds(1))
  }
}

import Control
import Glibc
import Linux

/// Writes the daemon's log lines to standard error, each with its priority or the time in front.
/// systemd's journal reads the priority (sd-daemon(3)) if standard error is connected to it.
///
/// Lines are written on a thread of their own (`LogWriter`), so a journal that is stalled, or a
/// terminal that is stopped, doesn't delay the daemon.
struct DaemonLog: Sendable {
  enum Priority: Int {
    case error = 3
    case warning = 4
    case notice = 5
    case info = 6
  }

  private let toJournal: Bool
  private let writer: LogWriter
  /// Lines of lower priority aren't written.
  private let lowestPriority: Priority

  init() {
    toJournal = Self.standardErrorIsTheJournal()
    writer = LogWriter(nil)
    lowestPriority = .info
  }

  /// The log of a wrapper. A wrapper shares standard error with its program, so only errors are
  /// written there.
  ///
  /// - Parameters:
  ///   - path: a file that gets all lines instead; nil: only errors are written.
  ///   - errors: where errors are written if there is no such file; nil: standard error.
  init(ofWrapper path: String?, errors: Descriptor? = nil) {
    toJournal = false
    var (descriptor, failure): (Descriptor?, String?) = (nil, nil)
    if let path {
      do throws(SystemCallError) {
        descriptor = try Descriptor.open(path, O_WRONLY | O_CREAT | O_APPEND, mode: 0o600)
      } catch { failure = "\(error)" }
    }
    writer = LogWriter(descriptor ?? errors)
    lowestPriority = descriptor == nil ? .error : .info
    if let failure { self(.error, "the log can't be written: \(failure); errors are logged here") }
  }

  func callAsFunction(_ priority: Priority, _ text: String) {
    guard priority.rawValue <= lowestPriority.rawValue else { return }
    let oneLine = text.split(separator: "\n", omittingEmptySubsequences: true)
      .joined(separator: " | ")
    // A process chooses its own name, and operators read the log on a terminal.
    let safe = escaped(oneLine)
    writer.write(Array((prefix(priority) + safe + "\n").utf8)) { lost in
      let what = lost == 1 ? "1 line was" : "\(lost) lines were"
      return Array(
        (prefix(.warning) + "\(what) lost: standard error was not read in time\n").utf8)
    }
  }

  private func prefix(_ priority: Priority) -> String {
    toJournal ? "<\(priority.rawValue)>" : "\(Self.timeOfDay()) "
  }

  /// Waits until all lines are written, for at most `limit`. Called at the end of the process.
  func drain(within limit: Duration = .seconds(1)) { writer.drain(within: limit) }

  /// Whether systemd's journal reads standard error. JOURNAL_STREAM is inherited, also by a
  /// terminal that a unit has started. The journal reads standard error only if the variable names
  /// that itself, by device and inode (systemd.exec(5)).
  private static func standardErrorIsTheJournal() -> Bool {
    guard let stream = getenv("JOURNAL_STREAM").map({ String(cString: $0) }) else { return false }
    var status = stat()
    return fstat(STDERR_FILENO, &status) == 0 && stream == "\(status.st_dev):\(status.st_ino)"
  }

  /// The local time, such as `14:03:27.104`.
  private static func timeOfDay() -> String {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    var fields = tm()
    localtime_r(&now.tv_sec, &fields)
    func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let milliseconds = String(now.tv_nsec / 1_000_000 + 1000).dropFirst()
    return "\(two(fields.tm_hour)):\(two(fields.tm_min)):\(two(fields.tm_sec)).\(milliseconds)"
  }

  /// The current time in ISO 8601, in UTC, with seconds.
  static func timestamp() -> String { "\(JournalWriter.wall().text.prefix(19))Z" }
}

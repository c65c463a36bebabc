import ArgumentParser
import Control
import Daemon
import Glibc
import Journal
import Linux
import PolicyFile

/// The value of `--since`: the length of time before now.
struct Since: ExpressibleByArgument {
  var duration: Duration
  private let text: String

  static let hour = Since(duration: .seconds(3600), text: "1h")
  static let week = Since(duration: .seconds(7 * 86_400), text: "7d")

  private init(duration: Duration, text: String) { (self.duration, self.text) = (duration, text) }

  /// Reads `90s`, `30m`, `12h`, `7d` or `2w`. A number alone is in seconds.
  init?(argument: String) {
    guard case .success(let duration) = OptionUnits.duration(argument) else { return nil }
    self.init(duration: duration, text: argument)
  }

  var defaultValueDescription: String { text }
}

/// Formats times in the reader's time zone.
struct Clock {
  private let today = Clock.parts(Self.now().seconds)

  static func now() -> WallTime {
    WallTime(nanoseconds: Clocks.realtime)
  }

  /// Formats a time in ISO 8601 as `14:03:27.104`, with the date before it if it is of another day.
  func callAsFunction(_ time: String) -> String {
    guard let wall = WallTime(text: time) else { return time }
    let parts = Self.parts(wall.seconds)
    let milliseconds = wall.nanoseconds / 1_000_000 - wall.seconds * 1000
    let clock = dateText(parts, as: "%H:%M:%S") + "." + String(milliseconds + 1000).dropFirst()
    let isToday = parts.tm_year == today.tm_year && parts.tm_yday == today.tm_yday
    return isToday ? clock : dateText(parts, as: "%Y-%m-%d") + " " + clock
  }

  private static func parts(_ seconds: Int64) -> tm {
    var seconds = time_t(seconds)
    var parts = tm()
    localtime_r(&seconds, &parts)
    return parts
  }
}

enum JournalFiles {
  /// Returns a directory's segments, or one file, the oldest first.
  static func segments(at path: String) throws -> [JournalSegment] {
    let status: stat
    do throws(SystemCallError) { status = try readStatus(of: path) } catch {
      throw CommandFailure(.notDone, "no journal at \(escaped(path)): \(error.reason)")
    }
    guard status.st_mode & S_IFMT == S_IFDIR else { return [JournalDirectory.segment(path)] }
    let segments: [JournalSegment]
    do { segments = try JournalDirectory(path: path).segments() } catch {
      throw CommandFailure(.notDone, "can't read the journal: \(error)")
    }
    guard !segments.isEmpty else {
      throw CommandFailure(.notDone, "the directory \(escaped(path)) has no journal segments")
    }
    return segments
  }

  /// Returns the segments of the daemon that has ended, whose journal stays, and says so.
  static func ofLastDaemon(_ action: String) throws -> [JournalSegment] {
    Output.complain("no daemon is running; \(action) the journal of the last one")
    return try segments(at: "\(DefaultPaths.ofThisProcess().stateDirectory)/journal")
  }

  /// Returns the index of the segment that was written at a time; 0 if all are later.
  static func firstSegment(at time: WallTime, of segments: [JournalSegment]) -> Int {
    segments.lastIndex { segment in
      JournalDirectory.beginning(of: segment.name).map { $0 <= time } ?? false
    } ?? 0
  }

  /// Reports each part of a journal that was left out, on standard error.
  static func complain(_ problems: [JournalProblem]) {
    for problem in problems { Output.complain(escaped("\(problem)")) }
  }
}

extension DaemonConnection {
  /// Asks the daemon for its journal. The files that the answer names have all events until now.
  mutating func journal(
    follow: Bool = false, worker: String? = nil
  ) throws -> JournalLocation {
    try ask(.events, worker: worker, for: \.journal, about: "the journal") { $0.follow = follow }
  }

  /// Returns the directory of the daemon's journal. It throws an error if the daemon keeps none.
  mutating func journalDirectory() throws -> String {
    if let directory = try journal().directory { return directory }
    throw CommandFailure(.notDone, "the daemon keeps no journal: `journal: { enabled: false }`")
  }
}

import Lifecycle
import Linux
import Policy

/// A process as rules see it. What a rule asks for is read then, and once. Not for the loop's thread.
final class ProcessObservation {
  let stat: ProcessStat
  private let now: Instant
  /// nil: it is read.
  private let knownCommand: [String]?

  /// - Parameter command: of a process whose memory may be on disk, where its command line can't be read.
  init(_ stat: ProcessStat, now: Instant, command: [String]? = nil) {
    self.stat = stat
    self.now = now
    knownCommand = command
  }

  var name: String { stat.name }
  var age: Duration { max(.zero, now - Instant(nanoseconds: stat.started)) }
  // nil, here and below: it may not be read.
  lazy var words: [String]? = knownCommand ?? ProcessDetails.command(of: stat.pid)
  lazy var command: String? = words.map { $0.joined(separator: " ") }
  lazy var executable: String? = ProcessDetails.executable(of: stat.pid)
  // It has ended.
  lazy var user: UInt32? = (try? ProcessStatus.read(stat.pid))?.user
  lazy var cgroup: String? = ProcessDetails.cgroup(of: stat.pid)
  lazy var footprint: ByteCount? = ByteCount(Int64(clamping: anonymousMemory(of: stat.pid)))
}

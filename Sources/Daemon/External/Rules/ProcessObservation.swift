import Linux
import Policy

/// A process as rules see it. Each property is read when a rule needs it, and once. It mustn't be
/// used on the event loop's thread.
final class ProcessObservation {
  let stat: ProcessStat
  private let now: Instant
  /// The command line, if it was given; nil if it has to be read.
  private let givenCommand: [String]?

  /// - Parameter command: the command line of a process whose memory may be on disk, so that it
  ///   can't be read.
  init(_ stat: ProcessStat, now: Instant, command: [String]? = nil) {
    self.stat = stat
    self.now = now
    givenCommand = command
  }

  var name: String { stat.name }
  var age: Duration { max(.zero, now - Instant(nanoseconds: stat.started)) }
  // These properties are nil if they may not be read.
  lazy var arguments: [String]? = givenCommand ?? ProcessDetails.command(of: stat.pid)
  lazy var command: String? = arguments.map { $0.joined(separator: " ") }
  lazy var executable: String? = ProcessDetails.executable(of: stat.pid)
  // A process that can't be read has ended.
  lazy var user: UInt32? = (try? ProcessStatus.read(stat.pid))?.user
  lazy var cgroup: String? = ProcessDetails.cgroup(of: stat.pid)
  lazy var footprint: ByteCount? = ByteCount(Int64(clamping: anonymousMemory(of: stat.pid)))
}

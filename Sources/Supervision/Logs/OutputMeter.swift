import CLinux
import Glibc
import Linux

/// Measures whether a worker writes output. `TrafficMonitor` can't see this half of a conversation
/// over pipes.
///
/// The kernel counts what a process has written (proc_pid_io(5)). The counts include log files, and
/// a process's wake-ups of its own threads. So small sums don't count, and neither do a few writes
/// of 8 bytes each: those are eventfds (a thread of node's pool wakes the main thread that way for
/// each file that tsserver reads).
///
/// While its standard output is full, the worker waits with half an answer. It continues when the
/// reader reads, which wakes no sleeping worker.
public struct OutputMeter: Sendable {
  private var written: [Int32: ProcessWrites]?

  /// The minimum number of bytes between two samples that counts as output. The shortest answers of
  /// JSON-RPC have about 40.
  private static let minBytes: UInt64 = 32
  /// The number of bytes of a write to an eventfd.
  private static let bytesOfWakeUp: UInt64 = 8
  /// The maximum number of 8-byte writes between two samples that are taken for wake-ups. More of
  /// them are output.
  private static let maxWakeUps: UInt64 = 64

  /// The offset in standard error, if that is a file of its own. Messages there aren't a use of the
  /// worker.
  private var errors: UInt64?

  public init() {}

  /// The offset of the process in its standard error. It is nil if that isn't a file, or is the
  /// same file as standard output. The kernel doesn't count what was written to a pipe.
  static func errorLength(of pid: Int32) -> UInt64? {
    let link = "/proc/\(pid)/fd/"
    guard let file = readLink("\(link)\(STDERR_FILENO)"), file.hasPrefix("/"),
      !file.hasPrefix("/dev/"), file != readLink("\(link)\(STDOUT_FILENO)")
    else { return nil }
    return filePosition(of: STDERR_FILENO, in: pid).flatMap { UInt64(exactly: $0) }
  }

  /// Whether the worker has written output since the last call. The first call only prepares.
  public mutating func sample(_ tree: ProcessTree) -> Bool {
    let output = measure(tree)
    let before = errors
    errors = tree.pids.first.flatMap(Self.errorLength)
    if let root = tree.pids.first, Self.isFull(STDOUT_FILENO, of: root) { return true }
    let errorBytes = before.flatMap { before in errors.map { $0 > before ? $0 - before : 0 } } ?? 0
    return output.map { $0.bytes >= Self.minBytes &+ errorBytes } ?? false
  }

  /// What was written since the last call. It is nil for the first call.
  public mutating func measure(_ tree: ProcessTree) -> Output? {
    var now: [Int32: ProcessWrites] = [:]
    for pid in tree.pids {
      // A process that has ended, or that may not be inspected, isn't counted.
      if let writes = try? ProcessWrites.read(pid) { now[pid] = writes }
    }
    defer { written = now }
    return written.map { before in
      Output(
        bytes: Self.output(from: before, to: now),
        reachesDisk: now.contains { $0.value.stored > before[$0.key]?.stored ?? 0 })
    }
  }

  public struct Output: Hashable, Sendable {
    /// The number of bytes without wake-ups.
    public var bytes: UInt64
    /// True if pages of a file on a disk were changed.
    public var reachesDisk: Bool
  }

  /// The number of bytes between two samples. If a process is new, all that it has written counts.
  static func output(
    from before: [Int32: ProcessWrites], to now: [Int32: ProcessWrites]
  ) -> UInt64 {
    // The kernel adds the counts of a reaped process to those of its parent.
    let ended = before.filter { now[$0.key] == nil }.reduce(UInt64(0)) { $0 &+ $1.value.bytes }
    let sum = now.reduce(UInt64(0)) { sum, process in
      let old = before[process.key] ?? ProcessWrites(bytes: 0, calls: 0)
      // If a count is smaller than before, another process has the same pid now.
      guard process.value.bytes >= old.bytes, process.value.calls >= old.calls else { return sum }
      let bytes = process.value.bytes - old.bytes
      let calls = process.value.calls - old.calls
      let areWakeUps = bytes == calls * bytesOfWakeUp && calls <= maxWakeUps
      return sum &+ (areWakeUps ? 0 : bytes)
    }
    return sum > ended ? sum - ended : 0
  }

  /// Whether a pipe or socket of the process accepts no more bytes. The duplicate of the descriptor
  /// exists for microseconds: a longer one would keep the reader from seeing the end of the pipe.
  private static func isFull(_ number: Int32, of pid: Int32) -> Bool {
    guard let pidfd = try? Descriptor.pidfd(of: pid) else { return false }
    let raw = clinux_pidfd_getfd(pidfd.raw, number)
    return raw >= 0 && !Descriptor(foreign: raw).isWritable
  }
}

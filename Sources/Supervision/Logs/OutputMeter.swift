import CLinux
import Glibc
import Linux

/// Measures whether a worker writes output: the half of a conversation over pipes that `TrafficMonitor` can't
/// see.
///
/// What it has written is in the kernel's own counts (proc_pid_io(5)), which include log files and its wake-ups of its
/// own threads. So small sums don't count, nor do a few writes of 8 bytes each: those are eventfds (a thread of
/// node's pool wakes the main thread so for each file that tsserver looks at).
/// While its standard output is full, the worker waits with half an answer. It continues when the reader reads,
/// which wakes no sleeping worker.
public struct OutputMeter: Sendable {
  private var written: [Int32: ProcessWrites]?

  /// Bytes between two looks. The shortest answers of JSON-RPC have about 40.
  private static let least: UInt64 = 32
  private static let wakeUp: UInt64 = 8
  /// More of them are work.
  private static let mostWakeUps: UInt64 = 64

  /// Bytes that were written to standard error, if that is a file of its own: messages are no use.
  private var errors: UInt64?

  public init() {}

  /// nil: it is no file, or standard output is the same one. What was written to a pipe isn't counted anywhere.
  static func errorLength(of pid: Int32) -> UInt64? {
    let link = "/proc/\(pid)/fd/"
    guard let file = readLink("\(link)\(STDERR_FILENO)"), file.hasPrefix("/"),
      !file.hasPrefix("/dev/"), file != readLink("\(link)\(STDOUT_FILENO)"),
      // Ended, or it may not be inspected.
      let info = try? readText("/proc/\(pid)/fdinfo/\(STDERR_FILENO)")
    else { return nil }
    let position = info.split(separator: "\n").first { $0.hasPrefix("pos:") }
    return position.flatMap { $0.split(separator: "\t").last }.flatMap { UInt64($0) }
  }

  /// Since the last look; the first only prepares.
  public mutating func look(at tree: ProcessTree) -> Bool {
    let output = measure(tree)
    let before = errors
    errors = tree.pids.first.flatMap(Self.errorLength)
    if let root = tree.pids.first, Self.isFull(STDOUT_FILENO, of: root) { return true }
    let known = before.flatMap { before in errors.map { $0 > before ? $0 - before : 0 } } ?? 0
    return output.map { $0.bytes >= Self.least &+ known } ?? false
  }

  /// What was written since the last look; nil: this is the first.
  public mutating func measure(_ tree: ProcessTree) -> Output? {
    var now: [Int32: ProcessWrites] = [:]
    for pid in tree.pids {
      // The process has ended, or it may not be inspected.
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
    /// Without wake-ups.
    public var bytes: UInt64
    /// Pages of a file on a disk were changed.
    public var reachesDisk: Bool

    public init(bytes: UInt64, reachesDisk: Bool) {
      self.bytes = bytes
      self.reachesDisk = reachesDisk
    }
  }

  /// Bytes; all that a process which wasn't there before has written.
  static func output(
    from before: [Int32: ProcessWrites], to now: [Int32: ProcessWrites]
  ) -> UInt64 {
    // The kernel adds the counts of a reaped process to its parent's.
    let ended = before.filter { now[$0.key] == nil }.reduce(UInt64(0)) { $0 &+ $1.value.bytes }
    let sum = now.reduce(UInt64(0)) { sum, process in
      let old = before[process.key] ?? ProcessWrites(bytes: 0, calls: 0)
      // Less than before: another process has the number.
      guard process.value.bytes >= old.bytes, process.value.calls >= old.calls else { return sum }
      let bytes = process.value.bytes - old.bytes
      let calls = process.value.calls - old.calls
      let areWakeUps = bytes == calls * wakeUp && calls <= mostWakeUps
      return sum &+ (areWakeUps ? 0 : bytes)
    }
    return sum > ended ? sum - ended : 0
  }

  /// Through a duplicate that is held for microseconds: a longer one would keep the reader from
  /// seeing the end.
  private static func isFull(_ number: Int32, of pid: Int32) -> Bool {
    guard let pidfd = try? Descriptor.pidfd(of: pid) else { return false }
    let raw = clinux_pidfd_getfd(pidfd.raw, number)
    guard raw >= 0 else { return false }
    let duplicate = Descriptor(foreign: raw)
    return !duplicate.isWritable
  }
}

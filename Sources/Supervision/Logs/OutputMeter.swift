import CLinux
import Glibc
import Linux

/// Measures whether a worker writes output: the half of a conversation over pipes that `TrafficMonitor` can't
/// see.
///
/// What it has written is in the kernel's own count (`wchar` of proc_pid_io(5)), which includes log
/// files and its wake-ups of its own threads; those are 8 bytes each, so small sums don't count.
/// While its standard output is full, the worker waits with half an answer. It continues when the reader reads,
/// which wakes no sleeping worker.
public struct OutputMeter: Sendable {
  private var written: UInt64?

  /// Bytes between two looks. The shortest answers of JSON-RPC have about 40.
  private static let least: UInt64 = 32

  public init() {}

  /// Since the last look; the first only prepares.
  public mutating func look(at tree: ProcessTree) -> Bool {
    let now = tree.pids.reduce(UInt64(0)) { $0 &+ Self.written(by: $1) }
    defer { written = now }
    if let root = tree.pids.first, Self.isFull(STDOUT_FILENO, of: root) { return true }
    // Less than before: one that had a share of it has ended.
    guard let written, now > written else { return false }
    return now - written >= Self.least
  }

  private static func written(by pid: Int32) -> UInt64 {
    // The process has ended, or it may not be inspected.
    (try? writtenBytes(of: pid)) ?? 0
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

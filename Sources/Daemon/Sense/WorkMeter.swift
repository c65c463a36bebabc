import Linux
import Supervision

/// Whether a wrapped program is at work.
struct WorkMeter: Sendable {
  private var output = OutputMeter()
  private var members: Set<Int32> = []

  /// Whether it has written something, has started or ended a process since the last look, or is at
  /// work now. On a busy machine that needn't mean processor time: it may be waiting for that.
  mutating func isAtWork(_ tree: ProcessTree) -> Bool {
    let hasWritten = output.look(at: tree)
    return compare(Set(tree.pids), hasWritten: hasWritten, isBusy: Self.isBusy)
  }

  /// The pure part. The first look has nothing to compare with.
  mutating func compare(
    _ pids: Set<Int32>, hasWritten: Bool, isBusy: (Int32) -> Bool
  ) -> Bool {
    defer { members = pids }
    return hasWritten || (pids != members && !members.isEmpty) || pids.contains(where: isBusy)
  }

  /// Some thread runs, or waits for a processor or a disk.
  private static func isBusy(_ pid: Int32) -> Bool {
    // One that has ended isn't.
    ((try? threads(of: pid)) ?? []).contains { thread in
      let state = (try? ProcessStat.read(thread: thread, of: pid))?.state
      return state == .running || state == .uninterruptible
    }
  }
}

import Linux
import Supervision

/// What shows that a worker is used, as a text for the operator.
enum SignOfUse: String, Sendable {
  case traffic = "traffic at its sockets or pipes"
  case output = "output that it wrote (to standard output or error, or to a log)"
  case processes = "a process of it that started or ended"
  case processor = "a thread that ran or waited for a disk"
  // A worker that isn't wrapped writes regularly, or uses processor time.
  case writes = "work without traffic: it writes regularly"
  case time = "work without traffic: processor time from foreground.cpu_below on"

  /// - Parameter source: where traffic came from; nil if that isn't known.
  func text(from source: TrafficSource?) -> String {
    self == .traffic ? source?.text ?? rawValue : rawValue
  }
}

/// Decides whether a wrapped program is at work.
struct WorkMeter: Sendable {
  private var output = OutputMeter()
  private var members: Set<Int32> = []

  /// The sign that the program is at work: it has written something, has started or ended a process
  /// since the last sample, or is busy now; nil if none of these is true. On a busy machine a
  /// program at work may use no processor time, because it waits for the processor.
  mutating func sample(_ tree: ProcessTree) -> SignOfUse? {
    let hasWritten = output.sample(tree)
    return compare(Set(tree.pids), hasWritten: hasWritten, isBusy: Self.isBusy)
  }

  /// Compares without reading anything. The first call has nothing to compare with.
  mutating func compare(
    _ pids: Set<Int32>, hasWritten: Bool, isBusy: (Int32) -> Bool
  ) -> SignOfUse? {
    defer { members = pids }
    if hasWritten { return .output }
    if pids != members, !members.isEmpty { return .processes }
    return pids.contains(where: isBusy) ? .processor : nil
  }

  /// Whether some thread runs, or waits for a processor or a disk.
  private static func isBusy(_ pid: Int32) -> Bool {
    // A process that has ended isn't busy.
    ((try? threads(of: pid)) ?? []).contains { thread in
      let state = (try? ProcessStat.read(thread: thread, of: pid))?.state
      return state == .running || state == .uninterruptible
    }
  }
}

import Linux
import Supervision

/// What shows that a worker is used, for people.
enum SignOfUse: Hashable, Sendable {
  case traffic, output, processes, processor
  /// Of a worker that isn't wrapped: it writes regularly; its processor time.
  case writes, time

  /// - Parameter source: of traffic, if it is known.
  func text(from source: TrafficSource?) -> String {
    self == .traffic ? source?.text ?? text : text
  }

  var text: String {
    switch self {
    case .traffic: "traffic at its sockets or pipes"
    case .output: "output that it wrote (to standard output or error, or to a log)"
    case .processes: "a process of it that started or ended"
    case .processor: "a thread that ran or waited for a disk"
    case .writes: "work without traffic: it writes regularly"
    case .time: "work without traffic: processor time from foreground.cpu_below on"
    }
  }
}

/// Whether a wrapped program is at work.
struct WorkMeter: Sendable {
  private var output = OutputMeter()
  private var members: Set<Int32> = []

  /// It has written something, has started or ended a process since the last look, or is at work
  /// now; nil: none of these. On a busy machine work needn't mean processor time: the program may
  /// be waiting for that.
  mutating func look(at tree: ProcessTree) -> SignOfUse? {
    let hasWritten = output.look(at: tree)
    return compare(Set(tree.pids), hasWritten: hasWritten, isBusy: Self.isBusy)
  }

  /// The pure part. The first look has nothing to compare with.
  mutating func compare(
    _ pids: Set<Int32>, hasWritten: Bool, isBusy: (Int32) -> Bool
  ) -> SignOfUse? {
    defer { members = pids }
    if hasWritten { return .output }
    if pids != members, !members.isEmpty { return .processes }
    return pids.contains(where: isBusy) ? .processor : nil
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

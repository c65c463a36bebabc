import CLinux
import Glibc

extension Thread {
  /// True in `urgently`.
  @TaskLocal static var isUrgent = false

  /// Performs work for which a program stands still. The calling thread, and those that help it in
  /// `inParallel`, have turns of 0.1 ms meanwhile (Linux 6.12): on a busy machine each wake of such
  /// a thread would otherwise wait for a turn of each busy program, some 3 ms long.
  public static func urgently<Value, Failure: Error>(
    _ work: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    // Without short turns, the work only takes longer.
    guard !isUrgent, clinux_use_short_turns(1) == 0 else { return try work() }
    defer { _ = clinux_use_short_turns(0) }
    return try $isUrgent.withValue(true) {
      Result { () throws(Failure) in try work() }
    }.get()
  }
}

/// The pauses of a thread that waits for a moment for another one to get on: it gives up the
/// processor, and after some turns it sleeps.
public struct BriefPauses {
  private var count = 0

  public init() {}

  public mutating func next() {
    count += 1
    if count > 50 { pauseThread(for: .microseconds(20)) } else { sched_yield() }
  }
}

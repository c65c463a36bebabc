/// Checks whether an event of a pressure trigger is true.
///
/// A kernel that permits triggers without CAP_SYS_RESOURCE starts the window of such a trigger at a
/// count that only privileged triggers keep up to date, and compares it with another count. So the
/// first stall after the trigger was made, even of 1 µs, counts as all stalls since boot. Therefore
/// this compares the kernel's count with the count when the trigger was made, or with that at the
/// last true event.
public struct TriggerCheck: Sendable {
  /// The threshold in microseconds.
  private let threshold: UInt64
  private var seen: UInt64

  /// - Parameter total: the kernel's count in microseconds, read before the trigger is made.
  public init(stall: Duration, total: UInt64) {
    threshold = UInt64(max(0, stall.microseconds))
    seen = total
  }

  /// Whether an event is true.
  ///
  /// - Parameter total: the kernel's count in microseconds at the event.
  public mutating func confirms(_ total: UInt64) -> Bool {
    guard total >= seen, total - seen >= threshold else { return false }
    seen = total
    return true
  }
}

extension PressureStall {
  public func totalMicroseconds(_ kind: PressureTrigger.Kind) -> UInt64? {
    switch kind {
    case .some: some.totalMicroseconds
    case .full: full?.totalMicroseconds
    }
  }
}

/// Whether a pressure trigger's word can be believed.
///
/// The kernel (6.5 and newer) starts the window of a trigger without CAP_SYS_RESOURCE at a count that
/// only privileged triggers keep up to date, and compares it with another: the first stall after the
/// trigger was made, of a microsecond, counts as all that there were since boot. So what the kernel
/// counts is compared with what it counted when the trigger was made, or last told the truth.
public struct TriggerCheck: Sendable {
  /// Microseconds.
  private let threshold: UInt64
  private var seen: UInt64

  /// `total`: the kernel's count in microseconds, read before the trigger is made.
  public init(stall: Duration, total: UInt64) {
    threshold = UInt64(max(0, stall.microseconds))
    seen = total
  }

  /// `total`: the kernel's count at the trigger's word.
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

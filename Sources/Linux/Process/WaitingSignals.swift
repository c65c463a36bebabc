/// The signals that are pending for a process, from `/proc/PID/status` (proc_pid_status(5)). The
/// other fields aren't parsed, because this is read regularly for sleeping workers.
public struct WaitingSignals: Hashable, Sendable {
  /// The pending signals of the process or its first thread that it doesn't ignore. Signal N is bit
  /// N−1.
  public var unheeded: UInt64
  /// The number of pending signals of all processes of its user (in its user namespace), including
  /// those that timers reserve; nil if the kernel doesn't report it.
  public var counted: UInt64?
  /// The real user ID.
  public var user: UInt32

  public init(unheeded: UInt64, counted: UInt64?, user: UInt32 = 0) {
    self.unheeded = unheeded
    self.counted = counted
    self.user = user
  }

  public static func read(_ pid: Int32) throws(SystemCallError) -> WaitingSignals {
    WaitingSignals(parsing: try readRecord("/proc/\(pid)/status"))
  }

  init(parsing bytes: [UInt8]) {
    func mask(_ key: StaticString) -> UInt64 {
      value(of: key, in: bytes)?.number(radix: 16) ?? 0
    }
    unheeded = (mask("SigPnd:") | mask("ShdPnd:")) & ~mask("SigIgn:")
    user = value(of: "Uid:", in: bytes)?.words().first?.number() ?? 0
    // The line is `SigQ: 2/96365`: the count and its limit.
    counted = value(of: "SigQ:", in: bytes)?.prefix { $0 != UInt8(ascii: "/") }.number()
  }
}

import CLinux

/// Whether a thread of the process waits in a call that moves memory, or copies it for a child, or
/// may do so. It is true if a thread can't be read. A thread that runs isn't noticed, even if it is
/// in such a call.
public func mayForkOrMove(_ pid: Int32) -> Bool {
  do throws(SystemCallError) {
    return try waitingCalls(of: pid).contains {
      clinux_may_fork_or_move($0.number, $0.arguments[0]) == 1
    }
  } catch { return !error.meansVanished }
}

/// Returns the lengths, in bytes, of each block of memory that a waiting thread makes longer
/// (mremap): before the call, and the bytes that are added. The process chooses these numbers.
public func growths(of pid: Int32) throws(SystemCallError) -> [(before: UInt64, added: UInt64)] {
  try waitingCalls(of: pid).compactMap(\.growth)
}

extension WaitingCall {
  /// The lengths of a block of memory that the call makes longer; `nil` if it does something else.
  /// The kernel rounds both up to whole pages.
  var growth: (before: UInt64, added: UInt64)? {
    let (before, after) = (Self.roundUp(arguments[1]), Self.roundUp(arguments[2]))
    guard clinux_is_mremap(number) == 1, before < after else { return nil }
    return (before, after - before)
  }

  private static func roundUp(_ length: UInt64) -> UInt64 {
    (length &+ (pageSize - 1)) & ~(pageSize - 1)
  }
}

private func waitingCalls(of pid: Int32) throws(SystemCallError) -> [WaitingCall] {
  var calls: [WaitingCall] = []
  for thread in try threads(of: pid) {
    do throws(SystemCallError) {
      if let call = try WaitingCall.current(thread: thread, of: pid) { calls.append(call) }
    } catch {
      // The thread has ended.
      if !error.meansVanished { throw error }
    }
  }
  return calls
}

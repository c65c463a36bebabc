import CLinux

/// Whether a thread of the process waits in a call that moves memory, or copies it for a child, or
/// may do so. It is true if a thread can't be read. A thread that runs isn't noticed, even if it is
/// in such a call.
public func mayForkOrMove(_ pid: Int32) -> Bool {
  do throws(SystemCallError) {
    for thread in try threads(of: pid) {
      let call: WaitingCall?
      do throws(SystemCallError) { call = try WaitingCall.current(thread: thread, of: pid) } catch {
        if error.meansVanished { continue }
        throw error
      }
      if let call, clinux_may_fork_or_move(call.number, call.arguments[0]) == 1 { return true }
    }
    return false
  } catch { return !error.meansVanished }
}

import CLinux

/// Whether a thread of the process waits in a call that moves memory, or copies it for a child, or
/// may do so. It is true if a thread can't be read. A thread that runs isn't noticed, even if it is
/// in such a call.
public func mayForkOrMove(_ pid: Int32) -> Bool {
  do throws(SystemCallError) {
    for thread in try threads(of: pid) where try mayForkOrMove(thread, of: pid) { return true }
    return false
  } catch { return !error.meansVanished }
}

private func mayForkOrMove(_ thread: Int32, of pid: Int32) throws(SystemCallError) -> Bool {
  let text: String
  do throws(SystemCallError) {
    text = try readText("/proc/\(pid)/task/\(thread)/syscall")
  } catch {
    if error.meansVanished { return false }
    throw error
  }
  guard let call = WaitingCall(text) else { return false }
  return clinux_may_fork_or_move(call.number, call.arguments[0]) == 1
}

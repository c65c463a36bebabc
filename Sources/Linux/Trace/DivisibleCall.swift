import CLinux

/// Calls that a stop ends early with a part of their result: a receipt with MSG_WAITALL, a blocked write, a
/// submission to io_uring that waits. Awake the call would have continued, and nothing can repair its result
/// afterwards. So a worker isn't stopped while one of its threads waits in such a call.
public enum DivisibleCall {
  /// A thread of the process that waits in such a call; `nil`: there is none, or this process may not look.
  ///
  /// - Throws: if a shortage keeps it from looking: the worker isn't stopped now.
  public static func thread(of pid: Int32) throws(SystemCallError) -> Int32? {
    let all = try readIfPossible { () throws(SystemCallError) in try threads(of: pid) }
    for thread in all ?? [] {
      let call = try readIfPossible { () throws(SystemCallError) in
        try WaitingCall.current(thread: thread, of: pid)
      }
      guard let call = call ?? nil else { continue }
      if isOne(call, link: { readLink("/proc/\(pid)/fd/\($0)") }) { return thread }
    }
    return nil
  }

  /// The same of all processes of a worker. Looks each 5 ms until there is none; blocks.
  ///
  /// - Returns: a thread that still waited in such a call at the deadline.
  public static func thread(
    in tree: ProcessTree, until deadline: Deadline
  ) throws(SystemCallError) -> Int32? {
    while let thread = try first(in: tree) {
      if deadline.hasPassed { return thread }
      pauseThread(for: .milliseconds(5))
    }
    return nil
  }

  private static func first(in tree: ProcessTree) throws(SystemCallError) -> Int32? {
    for pid in tree.pids { if let thread = try thread(of: pid) { return thread } }
    return nil
  }

  /// - Parameter link: what a descriptor of the process refers to.
  static func isOne(_ call: WaitingCall, link: (UInt64) -> String?) -> Bool {
    switch clinux_division_of(call.number, call.arguments) {
    case CLINUX_DIVISION_NONE: return false
    case CLINUX_DIVISION_OF_WRITE:
      let pipeBuffer: UInt64 = 4096
      guard call.arguments[2] <= pipeBuffer, let link = link(call.arguments[0]) else { return true }
      // An eventfd takes its eight bytes at once, too.
      return !link.hasPrefix("pipe:") && !link.hasPrefix("anon_inode:")
    default: return true
    }
  }
}

import CLinux

/// Calls that a stop ends early with a partial result: a receive with MSG_WAITALL, a blocked write,
/// a submission to io_uring that waits. Without the stop the call would have continued, and nothing
/// can repair its result afterwards. So a worker isn't stopped while one of its threads waits in
/// such a call.
public enum DivisibleCall {
  /// Finds a thread of the process that waits in such a call. It returns `nil` if there is none, or
  /// if this process may not read the calls.
  ///
  /// - Throws: an error if a resource is short. Then the worker must not be stopped now.
  public static func thread(of pid: Int32) throws(SystemCallError) -> Int32? {
    let all = try readIfPossible { () throws(SystemCallError) in try threads(of: pid) }
    for thread in all ?? [] {
      let call = try readIfPossible { () throws(SystemCallError) in
        try WaitingCall.current(thread: thread, of: pid)
      }
      guard let call = call ?? nil else { continue }
      if isDivisible(call, link: { readLink("/proc/\(pid)/fd/\($0)") }) { return thread }
    }
    return nil
  }

  /// Waits until no thread of a worker is in such a call, checking every 5 ms. It blocks the
  /// calling thread.
  ///
  /// - Returns: a thread that was still in such a call at the deadline; `nil` if there is none.
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

  /// Whether a call is divisible.
  ///
  /// - Parameter link: returns the target of a descriptor's link in /proc/PID/fd.
  static func isDivisible(_ call: WaitingCall, link: (UInt64) -> String?) -> Bool {
    switch clinux_division_of(call.number, call.arguments) {
    case CLINUX_DIVISION_NONE: return false
    case CLINUX_DIVISION_OF_WRITE:
      let pipeBuffer: UInt64 = 4096
      guard call.arguments[2] <= pipeBuffer, let link = link(call.arguments[0]) else { return true }
      // A write to a pipe of at most this size is never divided. An eventfd also accepts its eight
      // bytes at once.
      return !link.hasPrefix("pipe:") && !link.hasPrefix("anon_inode:")
    default: return true
    }
  }
}

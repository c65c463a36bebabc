import CLinux

extension WaitingCall {
  /// Reads the calls in which the threads of a process at rest wait.
  ///
  /// If /proc doesn't show the call of a stopped thread (arm64), the threads are traced for a
  /// moment, and their registers contain it. Threads that can't be traced or can't stop in time are
  /// left out.
  static func all(of process: ProcessIdentity) -> [(thread: Int32, call: WaitingCall)] {
    let pid = process.pid
    // A process that has ended has no threads.
    let shown = ((try? threads(of: pid)) ?? []).compactMap { thread in
      read(thread: thread, of: pid).map { (thread: thread, call: $0) }
    }
    guard shown.isEmpty, clinux_stop_hides_calls() == 1 else { return shown }
    let traced = BriefTracer.perform { () -> [(thread: Int32, call: WaitingCall)] in
      let deadline = Deadline(in: .seconds(1))
      guard let session = TraceSession.seizeWhatCanStop(process, until: deadline) else { return [] }
      defer { session.detach(waiting: .zero) }
      return session.threads.compactMap { thread in
        thread.registers.interruptedCall.map { (thread.tid, WaitingCall($0)) }
      }
    }
    return traced ?? []
  }
}

import CLinux
import Glibc

extension ProcessTree {
  /// Finds a thread of a frozen or stopped tree that wasn't waiting when it stopped: its system
  /// call was already complete, or it ran its own code.
  ///
  /// Data or a timeout wakes a waiting thread. If the stop comes before the thread gets a
  /// processor, the thread completes its call in the kernel and stops on the way back. It has then
  /// read a request, and nothing is left in the descriptor that could wake it. proc_pid_syscall(5)
  /// still shows the call, as for a thread that waits. Only the register of the result differs. On
  /// arm64 it shows no call of any stopped thread, so only the registers show whether there is one.
  ///
  /// The threads are traced for a moment, and return to their stop soon after (`threadOnItsWay`).
  /// Threads that can't be traced or can't stop by the deadline count as waiting. It blocks the
  /// calling thread, so it is meant for a job.
  public func threadWithResult(until deadline: Deadline) -> Int32? {
    let thread = BriefTracer.perform { [processes] () -> Int32? in
      for process in processes {
        let session = TraceSession.seizeWhatCanStop(process.identity, until: deadline)
        defer { session?.detach(waiting: .zero) }
        let busy = session?.threads.first {
          !$0.registers.areOfKernel && (!$0.isWaiting || $0.registers.hasResult)
        }
        if let busy { return busy.tid }
      }
      return nil
    }
    return thread ?? nil
  }
}

extension clinux_registers {
  fileprivate var hasResult: Bool {
    withUnsafePointer(to: self) { clinux_registers_has_result($0) == 1 }
  }
}

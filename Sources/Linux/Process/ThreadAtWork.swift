import CLinux
import Glibc

/// Facts about the threads of a tree that has just been frozen or stopped, from
/// proc_pid_syscall(5). They need the right to trace; a process that may not be examined counts as
/// waiting.
extension ProcessTree {
  /// A thread that was running its own code and wasn't waiting in the kernel; nil if there is none,
  /// or if the file doesn't show that. `threadWithResult` finds such a thread, too, and is slower.
  public var threadAtWork: Int32? { threadAtWork(callsAreHidden: clinux_stop_hides_calls() == 1) }

  /// - Parameter callsAreHidden: true if the file shows no call of a stopped thread, not even if it
  ///   waits (arm64).
  func threadAtWork(callsAreHidden: Bool) -> Int32? {
    // A thread that the kernel has made for io_uring has no stack and no instruction.
    callsAreHidden
      ? nil
      : firstThread { $0.starts(with: "-1 ".utf8) && !$0.starts(with: "-1 0x0 0x0".utf8) }
  }

  /// Waits until each thread has come to its stop.
  ///
  /// cgroup.events can report a group as frozen while a thread in it has still to be scheduled. The
  /// call of such a thread can't be read. No event reports its stop, so this checks every
  /// millisecond. It blocks the calling thread, so it is meant for a job.
  ///
  /// - Returns: a thread that still ran at the deadline; nil if there is none.
  public func threadOnItsWay(until deadline: Deadline) -> Int32? {
    while let thread = firstThread(where: { $0.starts(with: "running".utf8) }) {
      if deadline.hasPassed { return thread }
      pauseThread(for: .milliseconds(1))
    }
    return nil
  }

  /// A process with a pending signal whose handler will run, and that came before the process
  /// stopped; nil if there is none. A signal that came while the worker ran doesn't wake it later.
  /// SIGCHLD and SIGURG don't count: stopped children cause SIGCHLD, and Go sends SIGURG to its own
  /// threads.
  public var processWithSignal: Int32? {
    pids.first { pid in
      // A process that has ended counts as waiting.
      guard var status = try? ProcessStatus.read(pid) else { return false }
      for signal in [SIGCHLD, SIGURG] { status.caught &= ~(1 << UInt64(signal - 1)) }
      return status.hasHandledSignal
    }
  }

  private func firstThread(where matches: ([UInt8]) -> Bool) -> Int32? {
    for pid in pids {
      // A process or thread that has ended, or can't be examined, counts as waiting.
      for thread in (try? threads(of: pid)) ?? [] {
        let line = (try? readFile("/proc/\(pid)/task/\(thread)/syscall")) ?? []
        if matches(line) { return thread }
      }
    }
    return nil
  }
}

extension ProcessTree {
  /// Waits until each thread of a tree that was just frozen or stopped has come to rest.
  ///
  /// cgroup.events can report a group as frozen while a thread in it is still to be scheduled. For such a thread
  /// proc_pid_syscall(5) says `running`, and not what it waits for: a worker that opened a FIFO fell asleep
  /// and no writer woke it, in 4 of 11 runs of a test on two busy cores. It needs the right to trace;
  /// a process that may not be examined counts as resting. Blocks; for a job's thread.
  ///
  /// - Returns: a thread that still ran at the deadline.
  public func threadOnItsWay(until deadline: Deadline) -> Int32? {
    for pid in pids {
      // A process that has ended has no threads.
      for thread in (try? threads(of: pid)) ?? [] {
        while isRunning(thread, of: pid) {
          if deadline.hasPassed { return thread }
          pauseThread(for: .milliseconds(1))
        }
      }
    }
    return nil
  }

  private func isRunning(_ thread: Int32, of pid: Int32) -> Bool {
    // A thread that has ended, or can't be examined, doesn't run.
    let line = (try? readFile("/proc/\(pid)/task/\(thread)/syscall")) ?? []
    return line.starts(with: "running".utf8)
  }
}

extension ProcessTree {
  /// For a tree that has just been frozen or stopped: a thread that was in the middle of its own code, and
  /// not waiting in the kernel (proc_pid_syscall(5): −1). It needs the right to trace; a process that may not
  /// be examined counts as waiting.
  public var threadAtWork: Int32? {
    for pid in pids {
      // A process that has ended, or can't be examined, isn't at work.
      for thread in (try? threads(of: pid)) ?? [] {
        let line = (try? readFile("/proc/\(pid)/task/\(thread)/syscall")) ?? []
        if line.starts(with: "-1 ".utf8) { return thread }
      }
    }
    return nil
  }
}

extension ProcessTree {
  /// Of a tree that has just been frozen or stopped: a thread that was in the middle of its own code,
  /// and not waiting for anything in the kernel (proc_pid_syscall(5): −1). It takes the right to
  /// trace; who may not be looked at counts as waiting.
  public var threadAtWork: Int32? {
    for pid in pids {
      // What has ended, or can't be looked into, isn't at work.
      for thread in (try? threads(of: pid)) ?? [] {
        let line = (try? readFile("/proc/\(pid)/task/\(thread)/syscall")) ?? []
        if line.starts(with: "-1 ".utf8) { return thread }
      }
    }
    return nil
  }
}

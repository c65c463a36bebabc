import CLinux

extension TraceSession {
  /// A stop makes some blocked calls return EINTR although no signal handler will run. If that has happened,
  /// the call is restarted when the thread continues, unless a signal that arrived meanwhile calls a handler.
  /// So the program sees no more than it would have seen awake.
  public func restartInterruptedSyscalls() throws(TraceError) {
    let interrupts = clinux_stop_hides_calls() == 1 && isSignalHandled
    for index in threads.indices {
      let isChanged =
        interrupts
        ? clinux_registers_interrupt_for_signal(&threads[index].registers)
        : clinux_registers_mend_interrupted(&threads[index].registers)
      if isChanged == 1 {
        try writeRegisters(threads[index].tid, threads[index].registers)
      }
    }
  }

  /// A signal waits for which the process has a handler.
  private var isSignalHandled: Bool {
    // A process whose status can't be read has ended.
    (try? ProcessStatus.read(pid))?.hasHandledSignal ?? false
  }
}

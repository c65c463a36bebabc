import CLinux

extension TraceSession {
  /// Restarts calls that the stop has interrupted. A stop makes some blocked calls return EINTR
  /// although no signal handler will run. If that has happened, the call is restarted when the
  /// thread continues, unless a signal that arrived meanwhile calls a handler. So the program sees
  /// no more than it would have seen without the stop.
  public func restartInterruptedSyscalls() throws(TraceError) {
    let reader = clinux_stop_hides_calls() == 1 && isSignalHandled ? WaitReader(pid: pid) : nil
    for index in threads.indices {
      let isChanged: Int32
      if let reader {
        let always = reader.isOnSocketWithTimeout(threads[index].registers.interruptedCall)
        isChanged = clinux_registers_interrupt_for_signal(
          &threads[index].registers, always ? 1 : 0)
      } else {
        isChanged = clinux_registers_restart_interrupted(&threads[index].registers)
      }
      if isChanged == 1 {
        try writeRegisters(threads[index].tid, threads[index].registers)
      }
    }
    CallsBeforeStop.forget(pid)
  }

  /// True if a signal is pending for which the process has a handler.
  private var isSignalHandled: Bool {
    // If its status can't be read, the process has ended.
    (try? ProcessStatus.read(pid))?.hasHandledSignal ?? false
  }
}

extension WaitReader {
  /// Whether the call is on a socket with a timeout. Such a call is never made again after a
  /// handler, whatever its flags are (signal(7)). A call on a socket without a timeout is made
  /// again.
  func isOnSocketWithTimeout(_ call: clinux_call?) -> Bool {
    guard let call = call.map(WaitingCall.init), call.again == CLINUX_AGAIN_FROM_SOCKET else {
      return false
    }
    return limit(of: call) != nil
  }
}

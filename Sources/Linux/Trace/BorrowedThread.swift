extension TraceSession {
  /// The thread that an injector borrows: the first one that waits in a system call. It is `nil` if
  /// none does.
  public var borrowable: TracedThread? { threads.first(where: \.isWaiting) }

  /// Gives a thread that an earlier session has borrowed its registers and mask again, at an event
  /// stop.
  public func giveBack(_ thread: TracedThread) throws(TraceError) {
    guard let index = threads.firstIndex(where: { $0.tid == thread.tid }) else {
      throw .vanished(pid: pid)
    }
    try restore(thread)
    threads[index] = thread
  }
}

import CLinux

extension Descriptor {
  /// Performs a call that may wait for a lock of a pipe or socket.
  ///
  /// A thread of a worker may hold that lock while it waits for a missing page. The call can't be
  /// interrupted, not even by SIGKILL, and a process keeps all of its files until its last thread
  /// has ended. If the daemon were killed meanwhile, it would keep its locks and its connection to
  /// the standby pager, which wouldn't serve the page. So the call is made on a thread that has no
  /// other descriptor.
  ///
  /// Without a thread or a copy for that, the call is made here.
  ///
  /// - Returns: nil if the call returns that, or isn't done within the limit.
  public func apart<Value: Sendable>(
    within limit: Duration = .seconds(10), _ call: @escaping @Sendable (Descriptor) -> Value?
  ) -> Value? {
    let (result, done, raw) = (LateResult<Value?>(), Semaphore(), raw)
    let isStarted = Thread.start(name: "dormouse-apart") {
      let copy = clinux_keep_only(raw)
      // When the caller has given up, it may close the descriptor, and the copy may be of another
      // file with that number.
      if copy >= 0, !result.isAbandoned { result.set(call(Descriptor(owning: copy))) }
      done.signal()
    }
    guard isStarted else { return call(self) }
    guard done.wait(within: limit) else {
      result.abandon()
      return nil
    }
    return result.consume() ?? call(self)
  }
}

import CWorkerKit

extension Worker {
  /// Handles a memory warning in this process, without a daemon: for tests, or a menu item. It
  /// returns when all handlers have returned.
  ///
  /// `Worker.deadline` is `nil` in the handlers.
  ///
  /// - Returns: the footprint of the process before and afterwards.
  @discardableResult public func simulateMemoryWarning(
    level: PressureLevel = .warning
  ) async -> (before: Footprint, after: Footprint) {
    let before = Footprint.current()
    await simulate(
      .didReceiveMemoryWarning(
        MemoryWarning(level: level, footprintBytes: before.total)))
    workerkit_trim()
    return (before, Footprint.current())
  }

  /// Handles the event `didEnterBackground` in this process, without a daemon. It returns when all
  /// handlers have returned. The worker isn't suspended, and the snapshot provider isn't called.
  public func simulateEnteringBackground() async {
    await simulate(.didEnterBackground)
    workerkit_trim()
  }

  private func simulate(_ event: WorkerEvent) async {
    await withCheckedContinuation { continuation in
      listeners.deliver(event) { continuation.resume() }
    }
  }
}

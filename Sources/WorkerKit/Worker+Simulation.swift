import CWorkerKit

extension Worker {
  /// Has the same effect on this process as a memory warning, without a daemon: for tests, and for a menu item.
  /// Returns when all handlers have returned.
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

  /// The same for entering the background. The worker isn't suspended.
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

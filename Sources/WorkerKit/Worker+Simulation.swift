import CWorkerKit

extension Worker {
  /// Does to this process what a memory warning does, without a daemon: for tests, and for a menu item. Returns
  /// when all handlers have returned.
  ///
  /// - Returns: what the process took before and afterwards.
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

  /// The same for entering the background. It isn't suspended, of course.
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

import Lifecycle

/// Releases, once, the memory that only the start of the daemon has used: code (the parsers of
/// arguments and configuration files), freed heap and unused stack. Memory that is used later
/// stays, and may be locked. Belongs to the loop's thread.
enum StartupMemory {
  /// The name and state of each worker.
  typealias States = [WorkerID: WorkerState]

  private static let interval = Duration.seconds(5)
  /// The start counts as over after this many checks, whatever the workers do.
  static let maxChecks = 11

  /// Begins to check, every 5 s, whether the start is over.
  ///
  /// - Parameters:
  ///   - states: returns the states of all workers. The start is over when no worker is being
  ///     launched or taken over from an earlier daemon, and no state has changed since the last
  ///     check: the first suspensions are part of the start.
  ///   - finish: called once when the start is over. It does what would follow soon after the
  ///     start: to encode and write what was learned uses 2 MB of code and heap.
  ///   - release: called once, 5 s later, to release the memory.
  static func releaseAfterStart(
    _ timers: any Timers, _ states: @escaping () -> States, finish: @escaping () -> Void,
    release: @escaping () -> Void
  ) {
    func checkLater(after earlier: States, count: Int) {
      timers.after(interval) {
        let now = states()
        let isOver = now == earlier && !now.values.contains(.launching)
        guard count >= maxChecks || isOver else { return checkLater(after: now, count: count + 1) }
        finish()
        timers.after(interval) { release() }
      }
    }
    checkLater(after: states(), count: 1)
  }
}

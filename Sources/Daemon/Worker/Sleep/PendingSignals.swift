import Lifecycle
import Linux
import Policy

/// Wakes sleeping workers to which a signal was sent. The signal waits in the kernel, which reports that to no
/// other process. So the workers are looked at every ten seconds: only the root process, because operators know
/// its pid. Belongs to the loop's thread.
final class PendingSignals {
  private static let interval = Duration.seconds(10)

  private let timers: any Timers
  /// Workers that sleep and aren't acted on, with the pid of the root process.
  private let sleepers: () -> [(id: WorkerID, pid: Int32)]
  /// The signals that wait for it and that it doesn't ignore; nil: they can't be read, and it may have ended.
  private let pending: (Int32) -> UInt64?
  private let send: (Event) -> Void

  init(
    timers: any Timers, sleepers: @escaping () -> [(id: WorkerID, pid: Int32)],
    pending: @escaping (Int32) -> UInt64?, send: @escaping (Event) -> Void
  ) {
    self.timers = timers
    self.sleepers = sleepers
    self.pending = pending
    self.send = send
  }

  convenience init(timers: any Timers, driver: EngineDriver, workers: WorkerRegistry) {
    self.init(timers: timers) {
      workers.values.compactMap { runtime in
        guard driver.state.state(of: runtime.id)?.sleeps == true, !runtime.isBusy,
          let pid = runtime.process?.identity.pid
        else { return nil }
        return (runtime.id, pid)
      }
    } pending: {
      // A worker that has ended is skipped.
      try? ProcessStatus.unheededSignals(of: $0)
    } send: {
      driver.send($0)
    }
  }

  /// Looks now, and repeats that.
  func follow() {
    for (id, pid) in sleepers() {
      guard let pending = pending(pid),
        let signal = Self.askingSignals.first(where: { ProcessStatus.contains(pending, $0) })
      else { continue }
      send(.wakeNeeded(id, "signal \(signal)"))
    }
    timers.after(Self.interval) { [weak self] in self?.follow() }
  }

  /// Signals that make a program do something. Not those of job control, nor those that the end of a child or a
  /// change of a terminal causes. HUP, INT, QUIT, USR1, USR2, ALRM, TERM, VTALRM, PROF: signal(7).
  private static let askingSignals: [Int32] = [1, 2, 3, 10, 12, 14, 15, 26, 27]
}

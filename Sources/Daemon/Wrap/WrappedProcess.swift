import Glibc
import Lifecycle
import Linux
import Supervision

/// The processes of a wrapper's worker, as its signals reach them.
final class WrappedProcess: SignalTarget {
  private let id: WorkerID
  private let workers: WorkerRegistry
  private let driver: EngineDriver
  private let reapChildren: () -> Void

  /// - Parameter reap: children that have ended, traced ones and orphans.
  init(
    _ id: WorkerID, _ workers: WorkerRegistry, _ driver: EngineDriver, reap: @escaping () -> Void
  ) {
    self.id = id
    self.workers = workers
    self.driver = driver
    reapChildren = reap
  }

  private var process: WorkerProcess? { workers[id]?.process }

  var hasProcess: Bool { process != nil }

  var isAsleep: Bool {
    switch driver.state.state(of: id) {
    case .suspending, .suspended, .hibernating, .hibernated, .resuming: true
    default: workers[id]?.isBusy == true
    }
  }

  func catches(_ signal: Int32) -> Bool {
    // One that can't be asked has ended.
    (try? process?.catches(signal)) == true
  }

  func wake(_ reason: String) { driver.send(.wakeNeeded(id, reason)) }

  func signal(_ signal: Int32) {
    // One that has ended needs it no more.
    try? process?.signal(signal)
  }

  /// Until it is reaped, no other group can have its number.
  func signalGroup(_ signal: Int32) -> Bool {
    guard let runtime = workers[id], let process = runtime.process, !runtime.isReaped else {
      return false
    }
    return Glibc.kill(-process.identity.pid, signal) == 0
  }

  /// Its session has no terminal: there, a SIGTSTP that isn't caught does nothing.
  func stopAll() -> Bool {
    // Without /proc they can't be found.
    guard let tree = try? process?.tree() else { return false }
    for stat in tree.processes {
      // One that has ended meanwhile, or that we may not signal, can't be stopped.
      let catches = (try? ProcessStatus.read(stat.pid))?.catches(SIGTSTP) == true
      _ = try? stat.identity.signal(catches ? SIGTSTP : SIGSTOP)
    }
    return true
  }

  func continueAll() {
    // As above.
    try? process?.tree().continueAll()
  }

  func stopWrapper() { Glibc.kill(getpid(), SIGSTOP) }

  func reap() { reapChildren() }
}

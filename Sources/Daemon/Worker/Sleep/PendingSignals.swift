import Lifecycle
import Linux
import Policy

/// Wakes sleeping workers to which a signal was sent. The signal waits in the kernel, which reports that to no
/// other process. So the workers are looked at every ten seconds: only the root process, because operators know
/// its pid. Belongs to the loop's thread.
///
/// The kernel counts the waiting signals of each user. While that count is unchanged, one look a user is enough.
/// A signal that comes while another one's wait ends leaves the count as it is; a look at all workers every minute
/// finds it.
final class PendingSignals {
  private static let interval = Duration.seconds(10)
  private static let completeInterval = Duration.seconds(60)

  private let timers: any Timers
  /// Workers that sleep and aren't acted on, with the pid of the root process.
  private let sleepers: () -> [(id: WorkerID, pid: Int32)]
  /// nil: they can't be read, and the process may have ended.
  private let pending: (Int32) -> WaitingSignals?
  /// The inode of the process's user namespace; nil: it isn't known.
  private let namespace: (Int32) -> UInt64?
  private let send: (Event) -> Void
  /// By pid: the sleepers of the last look whose account is known.
  private var accounts: [Int32: Account] = [:]
  private var counts: [Account: UInt64] = [:]
  private var lastComplete: Instant?

  /// Processes whose waiting signals the kernel counts together: those of one real user in one user namespace
  /// (RLIMIT_SIGPENDING, getrlimit(2)). A sleeping process can't change it.
  private struct Account: Hashable {
    var user: UInt32
    var namespace: UInt64
  }

  init(
    timers: any Timers, sleepers: @escaping () -> [(id: WorkerID, pid: Int32)],
    pending: @escaping (Int32) -> WaitingSignals?,
    namespace: @escaping (Int32) -> UInt64?, send: @escaping (Event) -> Void
  ) {
    self.timers = timers
    self.sleepers = sleepers
    self.pending = pending
    self.namespace = namespace
    self.send = send
  }

  convenience init(timers: any Timers, driver: EngineDriver, workers: WorkerRegistry) {
    self.init(timers: timers) {
      workers.values.compactMap { worker in
        guard driver.state.state(of: worker.id)?.sleeps == true, !worker.isBusy,
          let pid = worker.process?.identity.pid
        else { return nil }
        return (worker.id, pid)
      }
    } pending: {
      // A worker that has ended is skipped.
      try? WaitingSignals.read($0)
    } namespace: {
      fileStatus(of: "/proc/\($0)/ns/user").map { UInt64($0.st_ino) }
    } send: {
      driver.send($0)
    }
  }

  /// Looks now, and repeats that.
  func follow() {
    let isComplete = lastComplete.map { timers.now - $0 >= Self.completeInterval } ?? true
    if isComplete { lastComplete = timers.now }
    var (newAccounts, newCounts): ([Int32: Account], [Account: UInt64]) = ([:], [:])
    for (id, pid) in sleepers() {
      // The account's first process has been read in this round, and the count is as it was in the last one.
      if !isComplete, let account = accounts[pid], let count = newCounts[account],
        count == counts[account]
      {
        newAccounts[pid] = account
        continue
      }
      guard let found = pending(pid) else { continue }
      if let account = account(pid, found), let count = found.counted {
        newAccounts[pid] = account
        // Not a later one: a signal that comes between two reads has to change the count of the next round.
        if newCounts[account] == nil { newCounts[account] = count }
      }
      if let signal = Self.askingSignals.first(where: {
        ProcessStatus.contains(found.unheeded, $0)
      }) {
        send(.wakeNeeded(id, "signal \(signal)"))
      }
    }
    (accounts, counts) = (newAccounts, newCounts)
    timers.after(Self.interval) { [weak self] in self?.follow() }
  }

  private func account(_ pid: Int32, _ found: WaitingSignals) -> Account? {
    guard let namespace = accounts[pid]?.namespace ?? namespace(pid) else { return nil }
    return Account(user: found.user, namespace: namespace)
  }

  /// Signals that make a program do something. Not those of job control, nor those that the end of a child or a
  /// change of a terminal causes. HUP, INT, QUIT, USR1, USR2, ALRM, TERM, VTALRM, PROF: signal(7).
  private static let askingSignals: [Int32] = [1, 2, 3, 10, 12, 14, 15, 26, 27]
}

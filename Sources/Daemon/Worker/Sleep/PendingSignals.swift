import Lifecycle
import Linux
import Policy
import Supervision

/// Wakes sleeping workers to which a signal was sent. The signal is pending in the kernel, which
/// reports that to no other process. So this checks the workers every 10 s: only their root
/// processes, because operators know their pids. Belongs to the loop's thread.
///
/// The kernel counts the pending signals of each user. While the count is unchanged, one check per
/// user is enough. If a signal arrives while another one is consumed, the count doesn't change. A
/// check of all workers every 60 s finds such a signal.
final class PendingSignals {
  private static let interval = Duration.seconds(10)
  private static let completeInterval = Duration.seconds(60)

  private let timers: any Timers
  /// Workers that sleep without an operation in progress, with the pids of their root processes.
  private let sleepers: () -> [(id: WorkerID, pid: Int32)]
  /// Reads the pending signals of a process; nil: they can't be read, and the process may have
  /// ended.
  private let pending: (Int32) -> WaitingSignals?
  /// Reads the inode of a process's user namespace; nil: it isn't known.
  private let namespace: (Int32) -> UInt64?
  private let send: (Event) -> Void
  /// The accounts of the workers that slept at the last check, by pid, if they are known.
  private var accounts: [Int32: Account] = [:]
  private var counts: [Account: UInt64] = [:]
  private var lastComplete: Instant?

  /// Identifies processes whose pending signals the kernel counts together: those of one real user
  /// in one user namespace (RLIMIT_SIGPENDING, getrlimit(2)). A sleeping process can't change its
  /// account.
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
    } pending: { pid in
      // A worker that has ended is skipped.
      guard var waiting = try? WaitingSignals.read(pid) else { return nil }
      if waiting.unheeded != 0 {
        let worker = workers.values.first { $0.process?.identity.pid == pid }
        waiting.unheeded &= ~(worker?.wakeWatch?.leftPending ?? 0)
      }
      return waiting
    } namespace: {
      fileStatus(of: "/proc/\($0)/ns/user").map { UInt64($0.st_ino) }
    } send: {
      driver.send($0)
    }
  }

  /// Checks now, and then every 10 s.
  func follow() {
    let isComplete = lastComplete.map { timers.now - $0 >= Self.completeInterval } ?? true
    if isComplete { lastComplete = timers.now }
    var (newAccounts, newCounts): ([Int32: Account], [Account: UInt64]) = ([:], [:])
    for (id, pid) in sleepers() {
      // The first process of the account was read in this round, and its count is the same as in
      // the last round.
      if !isComplete, let account = accounts[pid], let count = newCounts[account],
        count == counts[account]
      {
        newAccounts[pid] = account
        continue
      }
      guard let waiting = pending(pid) else { continue }
      if let account = account(pid, waiting), let count = waiting.counted {
        newAccounts[pid] = account
        // A later count isn't used: a signal that arrives between two reads has to change the count
        // of the next round.
        if newCounts[account] == nil { newCounts[account] = count }
      }
      if let signal = Self.askingSignals.first(where: {
        ProcessStatus.contains(waiting.unheeded, $0)
      }) {
        send(.wakeNeeded(id, Signals.text(signal)))
      }
    }
    (accounts, counts) = (newAccounts, newCounts)
    timers.after(Self.interval) { [weak self] in self?.follow() }
  }

  private func account(_ pid: Int32, _ waiting: WaitingSignals) -> Account? {
    guard let namespace = accounts[pid]?.namespace ?? namespace(pid) else { return nil }
    return Account(user: waiting.user, namespace: namespace)
  }

  /// Signals that make a program do something: HUP, INT, QUIT, USR1, USR2, ALRM, TERM, VTALRM, PROF
  /// (signal(7)). Signals of job control aren't included, nor those that the end of a child or a
  /// change of a terminal causes.
  private static let askingSignals: [Int32] = [1, 2, 3, 10, 12, 14, 15, 26, 27]
}

import Lifecycle
import Linux
import Policy
import Supervision

// Looks at all processes of the machine, for workers without a cgroup. On a machine with many processes
// they take a second and more, so another thread makes them.

extension Daemon {
  private static let processPatience = Duration.seconds(10)

  func makeProcessLook() -> SharedLook<ProcessScan?> {
    SharedLook(jobs, about: "processes", within: Self.processPatience) { [unowned self] in
      let onlyDescendants = role.looksAtDescendantsOnly
      // Without /proc there is nothing to be found; who asks goes on without.
      return { try? onlyDescendants ? ProcessScan.takeDescendants() : ProcessScan.take() }
    }
  }

  /// `then` gets all processes of a worker as of now, on the loop and perhaps at once; nil: they can't be
  /// found.
  func withTree(of process: WorkerProcess, then: @escaping (ProcessTree?) -> Void) {
    // A cgroup lists its own.
    if process.cgroup != nil { return then(try? process.tree()) }
    scanProcesses { scan in then(scan?.tree(root: process.identity, session: process.session)) }
  }

  func scanProcesses(then: @escaping (ProcessScan?) -> Void) {
    let begun = EventLoop.now
    processLook.take { [unowned self] found in
      let scan = found ?? nil
      if let scan { lastScan = (scan, begun) }
      then(scan)
    }
  }

  /// What reports go by: the last look at all processes, or, where one of these workers is newer than that,
  /// the next one.
  func withRecentScan(
    of runtimes: some Sequence<WorkerRuntime>, then: @escaping (ProcessScan?) -> Void
  ) {
    let needed = runtimes.filter { $0.process.map { $0.cgroup == nil } ?? false }
    guard !needed.isEmpty else { return then(nil) }
    let newest = needed.map { restarts.launchedAt(of: $0.id) }.max() ?? .zero
    if let lastScan, lastScan.begun > newest + Self.settlingOfLaunch { return then(lastScan.scan) }
    scanProcesses(then: then)
  }

  /// A program that has just been launched may start others.
  private static let settlingOfLaunch = Duration.seconds(1)
}

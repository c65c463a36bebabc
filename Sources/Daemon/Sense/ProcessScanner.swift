import Lifecycle
import Linux
import Policy
import Supervision

/// Scans all processes of the machine, for workers without a cgroup. On a machine with many
/// processes a scan takes a second or more. So it runs on another thread, and callers that ask at
/// the same time share it. It belongs to the event loop's thread.
final class ProcessScanner {
  /// Scans, and calls back once on the event loop, later, with nil if no process can be found or no
  /// answer came in time.
  typealias Scan = (_ then: @escaping (ProcessScan?) -> Void) -> Void

  private static let timeout = Duration.seconds(10)
  /// How long after a launch a scan is too early for reports, because a launched program may start
  /// others.
  private static let launchPeriod = Duration.seconds(1)

  private let clock: any Timers
  private let launchedAt: (WorkerID) -> Instant
  private let scan: Scan
  /// The last scan that found something, and when it was requested.
  private var last: (scan: ProcessScan, begun: Instant)?

  init(
    _ clock: any Timers, launchedAt: @escaping (WorkerID) -> Instant, scan: @escaping Scan
  ) {
    self.clock = clock
    self.launchedAt = launchedAt
    self.scan = scan
  }

  /// - Parameter onlyDescendants: whether to scan only this process's descendants.
  convenience init(
    _ services: Services, onlyDescendants: Bool, launchedAt: @escaping (WorkerID) -> Instant
  ) {
    let shared = CoalescedProbe<ProcessScan?>(
      services.jobs, about: "processes", within: Self.timeout
    ) {
      // Without /proc no process is found. Callers continue without a scan.
      { try? onlyDescendants ? ProcessScan.readDescendants() : ProcessScan.read() }
    }
    self.init(services.loop, launchedAt: launchedAt) { then in shared.ask { then($0 ?? nil) } }
  }

  /// The last scan that found something.
  var lastScan: ProcessScan? { last?.scan }

  /// Whether the last scan has found this process and was begun less than this long ago.
  func hasSeen(_ process: ProcessIdentity, within age: Duration) -> Bool {
    guard let last, clock.now - last.begun < age else { return false }
    return last.scan.contains(process)
  }

  /// Finds all processes of a worker as of now. `then` is called on the event loop, perhaps at
  /// once, with nil if they can't be found.
  func withTree(of process: WorkerProcess, then: @escaping (ProcessTree?) -> Void) {
    // A cgroup lists its own processes. The processes of an ended worker can't be found.
    if process.cgroup != nil { return then(try? process.tree()) }
    scanProcesses { scan in then(scan?.tree(root: process.identity, session: process.session)) }
  }

  /// Scans all processes as of now. The argument is nil if they can't be found.
  func scanProcesses(then: @escaping (ProcessScan?) -> Void) {
    let begun = clock.now
    scan { [unowned self] scan in
      if let scan { last = (scan, begun) }
      then(scan)
    }
  }

  /// A scan for reports: the last one, or a new one if one of these workers is newer than the last.
  func withRecentScan(
    of runtimes: some Sequence<WorkerUnit>, then: @escaping (ProcessScan?) -> Void
  ) {
    let needed = runtimes.filter { $0.process.map { $0.cgroup == nil } ?? false }
    guard !needed.isEmpty else { return then(nil) }
    let newest = needed.map { launchedAt($0.id) }.max() ?? .zero
    if let last, last.begun > newest + Self.launchPeriod { return then(last.scan) }
    scanProcesses(then: then)
  }
}

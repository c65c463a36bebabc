import Glibc
import Synchronization

/// The masters of a worker that is a prefork server (gunicorn, puma, unicorn), and those of them
/// that still wait after a wake.
///
/// Such a master aborts children that haven't reported for its timeout, 30 or 60 s. If all
/// processes continue at once after a longer sleep, the master checks them before they report. So
/// the children continue first, and a master after `grace`. No client waits for it, because the
/// children accept connections.
///
/// Each worker has one instance for all its sleeps. Masters that are still stopped when it is freed
/// continue.
public final class PreforkMasters: Sendable {
  private struct State {
    /// The masters that were found when the worker fell asleep, now or earlier.
    var masters: Set<ProcessIdentity> = []
    /// The masters that are stopped while their children run.
    var stopped: Set<ProcessIdentity> = []
  }

  private let state = Mutex(State())

  /// The time from the children's wake to the master's. A child reports between two requests.
  public static let grace = Duration.milliseconds(1_500)

  public init() {}

  deinit { release() }

  /// True if masters are stopped. Then `release` has to follow.
  public var areStopped: Bool { state.withLock { !$0.stopped.isEmpty } }

  /// True if the worker was found to be a prefork server.
  public var isPreforkServer: Bool { state.withLock { !$0.masters.isEmpty } }

  /// Finds the masters of a worker that has just come to rest, with its memory in place.
  ///
  /// - Throws: an error if a resource is short. Then the worker should not sleep now.
  public func find(in tree: ProcessTree) throws(SystemCallError) {
    guard tree.processes.count > 1 else { return record([], in: tree) }
    record(try PreforkFacts.read(tree), in: tree)
  }

  /// Adds masters to those found earlier. A master stays one: after a sleep the kernel doesn't show
  /// what some calls wait for.
  func record(_ facts: [PreforkFacts], in tree: ProcessTree) {
    let masters = PreforkFacts.masters(among: facts)
    // The shell that waits for a program in its own session (`wrap`) would notice that its job has
    // stopped.
    let eligible = Set(tree.processes.filter { $0.session != getsid(0) }.map(\.identity))
    state.withLock { $0.masters = $0.masters.union(masters).intersection(eligible) }
  }

  /// Determines the masters that must stay stopped. Call it when the worker is about to be woken.
  ///
  /// - Returns: the masters in `tree` that have children there, which continue now.
  public func keepStopped(in tree: ProcessTree) -> Set<ProcessIdentity> {
    let parents = Set(tree.processes.map(\.parent))
    return state.withLock { state in
      state.stopped = Set(
        tree.processes.map(\.identity).filter {
          state.masters.contains($0) && parents.contains($0.pid)
        })
      return state.stopped
    }
  }

  /// Lets stopped masters continue. It happens under the lock, so that a late signal doesn't undo a
  /// later stop of the worker.
  public func release() {
    state.withLock { state in
      // A process that has ended needs no signal.
      for master in state.stopped { _ = try? master.signal(SIGCONT) }
      state.stopped = []
    }
  }
}

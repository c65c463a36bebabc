import Glibc
import Synchronization

/// The masters of a worker that is a prefork server (gunicorn, puma, unicorn), and those of them that
/// still wait after a wake.
///
/// Such a master aborts children that haven't reported for its time-out, 30 or 60 s. When all processes
/// continue at once after a longer sleep, the master looks before the children report. So the children
/// continue first, and a master after `grace`. No client waits for it: the children accept.
///
/// Each worker has one of these for all its sleeps. Masters that are still held when it is released
/// continue.
public final class PreforkMasters: Sendable {
  private struct State {
    /// Found when the worker fell asleep, now or earlier.
    var known: Set<ProcessIdentity> = []
    /// Stopped, while their children run.
    var held: Set<ProcessIdentity> = []
  }

  private let state = Mutex(State())

  /// From the children's wake to the master's. A child reports between two requests.
  public static let grace = Duration.milliseconds(1_500)

  public init() {}

  deinit { release() }

  /// Masters wait: `release` has to follow.
  public var areHeld: Bool { state.withLock { !$0.held.isEmpty } }

  /// The worker has been seen as a prefork server.
  public var areKnown: Bool { state.withLock { !$0.known.isEmpty } }

  /// Finds the masters of a worker that has just come to rest, with its memory in place.
  ///
  /// - Throws: if a shortage keeps it from looking: the worker should not sleep now.
  public func look(at tree: ProcessTree) throws(SystemCallError) {
    guard tree.processes.count > 1 else { return note([], in: tree) }
    note(try PreforkFacts.read(tree), in: tree)
  }

  /// A master stays one: after a sleep the kernel doesn't show what some calls wait for.
  func note(_ facts: [PreforkFacts], in tree: ProcessTree) {
    let found = PreforkFacts.masters(among: facts)
    // The shell that waits for a program in its own session (`wrap`) would see that its job has stopped.
    let eligible = Set(tree.processes.filter { $0.session != getsid(0) }.map(\.identity))
    state.withLock { $0.known = $0.known.union(found).intersection(eligible) }
  }

  /// The worker is about to be woken.
  ///
  /// - Returns: the masters in `tree` that must stay stopped, because children of them continue now.
  public func hold(in tree: ProcessTree) -> Set<ProcessIdentity> {
    let parents = Set(tree.processes.map(\.parent))
    return state.withLock { state in
      state.held = Set(
        tree.processes.map(\.identity).filter {
          state.known.contains($0) && parents.contains($0.pid)
        })
      return state.held
    }
  }

  /// Lets masters that wait continue. Under the lock: a later stop of the worker isn't undone by a late
  /// signal.
  public func release() {
    state.withLock { state in
      // A process that has ended needs no signal.
      for master in state.held { _ = try? master.signal(SIGCONT) }
      state.held = []
    }
  }
}

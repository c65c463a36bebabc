import Hibernation
import Linux
import Supervision

/// The operations of `KeeperStarter` on processes and descriptors, on any thread. Tests provide their own.
protocol KeeperMeans: Sendable {
  /// The process that keeps descriptors for a later daemon.
  associatedtype Keeper: Sendable
  /// The descriptors that an earlier daemon's keeper passes on, until `areTaken`.
  associatedtype Handover: Sendable

  /// A later daemon may not open the memory of the workers.
  var forbidsStrangers: Bool { get }
  /// nil: there is no earlier keeper.
  func collect() -> Handover?
  func memories(in handover: Handover) -> [ProcessIdentity: Descriptor]
  /// The earlier keeper ends.
  func areTaken(_ handover: Handover)
  /// From now on no worker is hibernated whose memory no keeper can pass on.
  func requireKeeper()
  /// Waits until its program runs.
  func start() throws -> Keeper
  func hasEnded(_ keeper: Keeper) -> Bool
  /// Gives it all descriptors that a later daemon needs; then the earlier keeper ends.
  ///
  /// - Parameter taking: what the earlier one has, by worker.
  func use(
    _ keeper: Keeper, taking: [String: [ProcessIdentity: Descriptor]], from handover: Handover?)
  func log(_ priority: DaemonLog.Priority, _ text: String)
}

/// If Yama lets a daemon open the memory of its own children only, a keeper holds the descriptors of sleeping
/// workers' memory, and passes them to the next daemon. Belongs to the loop's thread.
final class KeeperStarter<Means: KeeperMeans> {
  /// Descriptors of their memory, by worker and process.
  typealias Sleepers = [String: [ProcessIdentity: Descriptor]]

  private let means: Means
  /// False in `dormouse wrap`, whose program doesn't outlive it.
  private let hasSuccessors: Bool
  private let process: HelperProcess<Means.Keeper>
  private var handover: Means.Handover?

  init(_ means: Means, hasSuccessors: Bool) {
    self.means = means
    self.hasSuccessors = hasSuccessors
    process = HelperProcess(start: { try means.start() }, hasEnded: { means.hasEnded($0) })
  }

  private var isNeeded: Bool { means.forbidsStrangers && hasSuccessors }

  /// Called before workers of an earlier daemon are adopted.
  func collectKeptMemories() {
    handover = means.collect()
    if isNeeded { means.requireKeeper() }
  }

  /// The descriptors that an earlier daemon had opened of the processes of a worker that is being adopted.
  func keptMemories(of processes: [ProcessIdentity]) -> [ProcessIdentity: Descriptor] {
    guard let handover else { return [:] }
    let wanted = Set(processes)
    return means.memories(in: handover).filter { wanted.contains($0.key) }
  }

  var hasKeptMemories: Bool { handover != nil }

  /// After adoption: the daemon's own keeper gets those descriptors of the earlier keeper that the workers
  /// hold, and the earlier one ends.
  func takeOverKeeping(of workers: WorkerRegistry) {
    guard let handover else { return }
    self.handover = nil
    guard isNeeded else { return means.areTaken(handover) }
    var sleepers: Sleepers = [:]
    for process in means.memories(in: handover).keys {
      for (id, runtime) in workers {
        guard let memory = runtime.process?.memory(of: process) else { continue }
        sleepers[id.name, default: [:]][process] = memory
      }
    }
    Self.startWhereMissing(process, means: means, sleepers: sleepers, handover: handover)
  }

  /// Must be done before a hibernation, on its thread: starting the keeper waits until its program runs.
  func startKeeperWhereMissing() -> @Sendable () -> Void {
    guard isNeeded else { return {} }
    return { [process, means] in
      Self.startWhereMissing(process, means: means, sleepers: [:], handover: nil)
    }
  }

  private static func startWhereMissing(
    _ process: HelperProcess<Means.Keeper>, means: Means, sleepers: Sleepers,
    handover: Means.Handover?
  ) {
    process.startWhereMissing {
      means.use($0, taking: sleepers, from: handover)
    } refusal: { error in
      means.log(
        .error,
        "no worker is hibernated: can't start the keeper that hands memory to the next daemon: \(error)"
      )
    }
  }
}

/// A `DescriptorKeeper`, which is this program again.
struct DescriptorKeeperMeans: KeeperMeans {
  /// The keeper's socket, in the state directory.
  let path: String
  let hibernation: HibernationService
  let daemonLog: DaemonLog

  private static let patience = Duration.seconds(2)

  var forbidsStrangers: Bool { Yama.current.forbidsStrangers }

  func collect() -> HandedOver? { HandedOver.collect(from: path, within: Self.patience) }

  func memories(in handover: HandedOver) -> [ProcessIdentity: Descriptor] { handover.memories }

  func areTaken(_ handover: HandedOver) { handover.areTaken() }

  func requireKeeper() { hibernation.requireKeeper() }

  func start() throws -> DescriptorKeeper {
    try DescriptorKeeper(command: [ownExecutable, "keeper", path])
  }

  func hasEnded(_ keeper: DescriptorKeeper) -> Bool { keeper.hasEnded() }

  func use(
    _ keeper: DescriptorKeeper, taking: [String: [ProcessIdentity: Descriptor]],
    from handover: HandedOver?
  ) {
    hibernation.set(keeper, taking: taking, from: handover) { [daemonLog] error in
      daemonLog(.error, "a later daemon can't restore sleeping workers: \(error)")
    }
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) { daemonLog(priority, text) }
}

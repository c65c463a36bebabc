import Hibernation
import Linux
import Supervision
import Synchronization

/// Starts the keeper, which holds the descriptors of sleeping workers' memory and passes them to
/// the next daemon. A keeper is needed if Yama lets a process open the memory of its own children
/// only. It belongs to the event loop's thread.
final class KeeperStarter {
  /// The memory descriptors of sleeping workers, by worker and process.
  typealias Sleepers = [String: [ProcessIdentity: Descriptor]]

  /// How long to wait for the answer of an earlier daemon's keeper.
  static let timeout = Duration.seconds(2)

  private let path: String
  private let timeout: Duration
  private let process: KeeperProcess
  private let processes: any Processes
  private let hibernation: HibernationService
  /// False in `dormouse wrap`, because its program doesn't outlive it.
  private let hasSuccessors: Bool
  /// What the keeper of an earlier daemon passes on; nil once it was handed over.
  private var handover: HandedOverMemories?

  /// - Parameters:
  ///   - path: the keeper's socket, in the state directory.
  ///   - command: the keeper's program and arguments, by default this program. The path is added to
  ///     them.
  init(
    path: String, command: [String] = [thisExecutable, "keeper"], processes: any Processes,
    hibernation: HibernationService, log: DaemonLog, hasSuccessors: Bool,
    timeout: Duration = timeout
  ) {
    self.path = path
    self.timeout = timeout
    self.processes = processes
    self.hibernation = hibernation
    self.hasSuccessors = hasSuccessors
    process = KeeperProcess(command: command + [path], hibernation: hibernation, log: log)
  }

  private var isNeeded: Bool { hasSuccessors && processes.forbidsStrangers }

  /// Gets the descriptors from an earlier daemon's keeper. Call this before that daemon's workers
  /// are adopted.
  func collectKeptMemories() {
    handover = HandedOverMemories.collect(from: path, within: timeout)
    // From now on a worker is hibernated only if a keeper can pass its memory on.
    if isNeeded { hibernation.requireKeeper() }
  }

  /// The memory descriptors that an earlier daemon had opened for these processes of a worker that
  /// is being adopted.
  func keptMemories(of processes: [ProcessIdentity]) -> [ProcessIdentity: Descriptor] {
    guard let handover else { return [:] }
    let wanted = Set(processes)
    return handover.memories.filter { wanted.contains($0.key) }
  }

  var hasKeptMemories: Bool { handover != nil }

  /// Passes the earlier keeper's descriptors that the workers hold to the daemon's own keeper, and
  /// ends the earlier keeper. Call this after the adoption.
  func takeOverKeeping(of workers: WorkerRegistry) {
    guard let handover else { return }
    self.handover = nil
    guard isNeeded else { return handover.confirm() }
    var sleepers: Sleepers = [:]
    for process in handover.memories.keys {
      for (id, worker) in workers {
        guard let memory = worker.process?.memory(of: process) else { continue }
        sleepers[id.name, default: [:]][process] = memory
      }
    }
    process.startWhereMissing(taking: sleepers, from: handover)
  }

  /// A function that starts the keeper if there is none. It must run before a hibernation, on the
  /// hibernation's thread, because it waits until the keeper's program runs.
  func startKeeperWhereMissing() -> @Sendable () -> Void {
    guard isNeeded else { return {} }
    return { [process] in process.startWhereMissing(taking: [:], from: nil) }
  }
}

/// Runs the keeper's process. It is started when it is first needed, and again after it was killed.
/// Any thread that may wait can use it.
private final class KeeperProcess: Sendable {
  private let current = Mutex<DescriptorKeeper?>(nil)
  private let command: [String]
  private let hibernation: HibernationService
  private let log: DaemonLog

  init(command: [String], hibernation: HibernationService, log: DaemonLog) {
    self.command = command
    self.hibernation = hibernation
    self.log = log
  }

  /// Starts the keeper if there is none, and passes it all descriptors that a later daemon needs.
  /// Then the earlier keeper ends.
  ///
  /// - Parameter sleepers: the descriptors that the earlier keeper has.
  func startWhereMissing(
    taking sleepers: KeeperStarter.Sleepers, from handover: HandedOverMemories?
  ) {
    current.withLock { current in
      if let current, !current.hasEnded() { return }
      do {
        let new = try DescriptorKeeper(command: command)
        current = new
        hibernation.set(new, taking: sleepers, from: handover) { [log] error in
          log(.error, "a later daemon can't restore sleeping workers: \(error)")
        }
      } catch {
        log(
          .error,
          "no worker is hibernated: can't start the keeper that hands memory to the next daemon: "
            + "\(error)"
        )
      }
    }
  }
}

/// The path of this process's program. It works even if the program's file has been replaced or
/// removed since.
let thisExecutable = "/proc/self/exe"

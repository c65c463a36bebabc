import Hibernation
import Linux
import Supervision
import Synchronization

/// If Yama lets a daemon open the memory of its own children only, a keeper holds the descriptors of sleeping
/// workers' memory, and passes them to the next daemon. Belongs to the loop's thread.
final class KeeperStarter {
  /// Descriptors of their memory, by worker and process.
  typealias Sleepers = [String: [ProcessIdentity: Descriptor]]

  /// An earlier keeper that doesn't answer is waited for this long.
  static let patience = Duration.seconds(2)

  private let path: String
  private let patience: Duration
  private let process: KeeperProcess
  private let processes: any Processes
  private let hibernation: HibernationService
  /// False in `dormouse wrap`, whose program doesn't outlive it.
  private let hasSuccessors: Bool
  /// What an earlier daemon's keeper passes on, until it is taken.
  private var handover: HandedOver?

  /// - Parameters:
  ///   - path: the keeper's socket, in the state directory.
  ///   - command: the keeper's program, which gets the path: this program again.
  init(
    path: String, command: [String] = [ownExecutable, "keeper"], processes: any Processes,
    hibernation: HibernationService, log: DaemonLog, hasSuccessors: Bool,
    patience: Duration = patience
  ) {
    self.path = path
    self.patience = patience
    self.processes = processes
    self.hibernation = hibernation
    self.hasSuccessors = hasSuccessors
    process = KeeperProcess(command: command + [path], hibernation: hibernation, log: log)
  }

  private var isNeeded: Bool { hasSuccessors && processes.forbidsStrangers }

  /// Called before workers of an earlier daemon are adopted.
  func collectKeptMemories() {
    handover = HandedOver.collect(from: path, within: patience)
    // From now on no worker is hibernated whose memory no keeper can pass on.
    if isNeeded { hibernation.requireKeeper() }
  }

  /// The descriptors that an earlier daemon had opened of the processes of a worker that is being adopted.
  func keptMemories(of processes: [ProcessIdentity]) -> [ProcessIdentity: Descriptor] {
    guard let handover else { return [:] }
    let wanted = Set(processes)
    return handover.memories.filter { wanted.contains($0.key) }
  }

  var hasKeptMemories: Bool { handover != nil }

  /// After adoption: the daemon's own keeper gets those descriptors of the earlier keeper that the workers
  /// hold, and the earlier one ends.
  func takeOverKeeping(of workers: WorkerRegistry) {
    guard let handover else { return }
    self.handover = nil
    guard isNeeded else { return handover.areTaken() }
    var sleepers: Sleepers = [:]
    for process in handover.memories.keys {
      for (id, worker) in workers {
        guard let memory = worker.process?.memory(of: process) else { continue }
        sleepers[id.name, default: [:]][process] = memory
      }
    }
    process.startWhereMissing(taking: sleepers, from: handover)
  }

  /// Must be done before a hibernation, on its thread: starting the keeper waits until its program runs.
  func startKeeperWhereMissing() -> @Sendable () -> Void {
    guard isNeeded else { return {} }
    return { [process] in process.startWhereMissing(taking: [:], from: nil) }
  }
}

/// The keeper's process: it is started when it is first needed, and again when it has been killed. From any thread that
/// may wait.
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

  /// It gets all descriptors that a later daemon needs; then the earlier keeper ends.
  ///
  /// - Parameter sleepers: what the earlier one has.
  func startWhereMissing(taking sleepers: KeeperStarter.Sleepers, from handover: HandedOver?) {
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
          "no worker is hibernated: can't start the keeper that hands memory to the next daemon: \(error)"
        )
      }
    }
  }
}

/// The program of which this is a process, also when its file has been replaced or removed since.
let ownExecutable = "/proc/self/exe"

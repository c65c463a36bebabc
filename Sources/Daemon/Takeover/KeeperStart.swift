import Glibc
import Hibernation
import Linux
import Supervision
import Synchronization

// Where Yama lets a daemon open the memory of its own children only, a keeper hands it to the next one.

extension Daemon {
  private var keeperPath: String { state.path + "/keeper.sock" }

  /// Before workers of an earlier daemon are adopted.
  func collectKeptMemories() {
    handedOver = HandedOver.collect(from: keeperPath, within: .seconds(2))
    if Yama.current.forbidsStrangers, role.hasSuccessor { hibernation.requireKeeper() }
  }

  /// What an earlier daemon had opened of a worker that is being adopted.
  func giveBackMemories(to process: WorkerProcess) {
    guard let handedOver else { return }
    do throws(SystemCallError) {
      for stat in try process.tree().processes {
        if let memory = handedOver.memories[stat.identity] {
          process.hold(memory, of: stat.identity)
        }
      }
    } catch { log(.warning, "its memory can't be taken over from an earlier daemon: \(error)") }
  }

  /// After adoption: our own keeper gets what the earlier one has, and that one ends.
  func takeOverKeeping() {
    guard let handedOver else { return }
    self.handedOver = nil
    guard Yama.current.forbidsStrangers else { return handedOver.areTaken() }
    var sleepers: [String: [ProcessIdentity: Descriptor]] = [:]
    for (id, runtime) in workers {
      for process in handedOver.memories.keys {
        guard let memory = runtime.process?.memory(of: process) else { continue }
        sleepers[id.name, default: [:]][process] = memory
      }
    }
    startKeeper(taking: sleepers, from: handedOver)
  }

  private func startKeeper(
    taking sleepers: [String: [ProcessIdentity: Descriptor]] = [:],
    from handedOver: HandedOver? = nil
  ) {
    startKeeperWhereMissing()(sleepers, handedOver)
  }

  /// What has to be done before a hibernation, on its thread: starting the keeper waits until its program
  /// runs.
  func startKeeperWhereMissing() -> (
    @Sendable ([String: [ProcessIdentity: Descriptor]], HandedOver?) -> Void
  ) {
    guard Yama.current.forbidsStrangers, role.hasSuccessor else { return { _, _ in } }
    return { [keepers, hibernation, log, mailbox, keeperPath] sleepers, handedOver in
      keepers.startWhereMissing(at: keeperPath) { new in
        hibernation.set(new, taking: sleepers, from: handedOver) { error in
          mailbox.post { $0.log(.error, "a later daemon can't bring sleepers back: \(error)") }
        }
      } refusal: { error in
        log(
          .error, "no keeper for what a later daemon needs, so workers aren't hibernated: \(error)")
      }
    }
  }

  static func ownExecutable() throws(SystemCallError) -> String {
    var buffer = [CChar](repeating: 0, count: 4096)
    let capacity = buffer.count
    let count = try systemCall("readlink", path: "/proc/self/exe") {
      readlink($0, &buffer, capacity)
    }
    return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

/// The process that keeps descriptors for a later daemon: started with the first worker that is to be
/// hibernated, and again when it has been killed. From any thread that may wait.
final class KeeperProcess: Sendable {
  private let current = Mutex<DescriptorKeeper?>(nil)

  func startWhereMissing(
    at path: String, then use: (DescriptorKeeper) -> Void, refusal: (any Error) -> Void
  ) {
    current.withLock { current in
      if let current, !current.hasEnded() { return }
      do {
        let new = try DescriptorKeeper(command: [try Daemon.ownExecutable(), "keeper", path])
        current = new
        use(new)
      } catch { refusal(error) }
    }
  }
}

import Glibc
import Hibernation
import Linux
import Supervision

// Where Yama lets a daemon open the memory of its own children only, a keeper hands it to the next one.

extension Daemon {
  private var keeperPath: String { state.path + "/keeper.sock" }

  /// Before workers of an earlier daemon are adopted.
  func collectKeptMemories() {
    handedOver = HandedOver.collect(from: keeperPath, within: .seconds(2))
    if Yama.current.forbidsStrangers, wrapped == nil { hibernation.requireKeeper() }
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

  /// From the first worker on that is to be hibernated.
  func startKeeper(
    taking sleepers: [String: [ProcessIdentity: Descriptor]] = [:],
    from handedOver: HandedOver? = nil
  ) {
    guard Yama.current.forbidsStrangers, wrapped == nil else { return }
    if let keeper, !keeper.hasEnded() { return }
    do {
      let new = try DescriptorKeeper(command: [try Self.ownExecutable(), "keeper", keeperPath])
      keeper = new
      hibernation.set(new, taking: sleepers, from: handedOver) { [mailbox] error in
        mailbox.post { $0.log(.error, "a later daemon can't bring sleepers back: \(error)") }
      }
    } catch {
      log(.error, "no keeper for what a later daemon needs, so workers aren't hibernated: \(error)")
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

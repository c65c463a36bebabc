import Control
import Glibc
import Lifecycle
import Linux
import Policy
import Supervision

/// Tells an end by the kernel's OOM killer from other ends by SIGKILL.
struct OOMWatch {
  /// As last looked at: how many of the worker's processes the kernel has ended, and how many of the
  /// whole machine's. The latter stands in where the worker's cgroup has no memory controller.
  private var inGroup = 0
  private var onMachine: Int?

  /// Before a launch, whose group is new.
  mutating func begin() {
    inGroup = 0
    onMachine = MemoryInfo.killedForMemory()
  }

  /// How many processes of the worker the kernel has ended since the last look, as far as its cgroup
  /// counts them.
  mutating func look(at group: WorkerCgroup?) -> Int {
    guard let count = group?.killedForMemory() else {
      onMachine = MemoryInfo.killedForMemory()
      return 0
    }
    onMachine = nil
    // A controller that was turned off and on again counts from 0.
    let new = count < inGroup ? count : count - inGroup
    inGroup = count
    return new
  }

  /// Whether the kernel may have ended the worker since the last look.
  func hasKilled(in group: WorkerCgroup?) -> Bool {
    if let count = group?.killedForMemory() { return count > inGroup }
    guard let before = onMachine, let now = MemoryInfo.killedForMemory() else { return false }
    return now > before
  }

  /// Before its cgroup is removed.
  static func status(_ exit: WorkerExit, of runtime: WorkerRuntime) -> ExitStatus {
    guard exit == .signaled(SIGKILL), !runtime.isKilled,
      runtime.kernelKills.hasKilled(in: runtime.process?.cgroup)
    else { return ExitStatus(exit) }
    return .outOfMemory
  }
}

extension Daemon {
  /// Once a second: the kernel may end one process of a worker, and leave the others.
  func lookForKernelKills(of runtime: WorkerRuntime) {
    guard let process = runtime.process, process.isAlive else { return }
    let count = runtime.kernelKills.look(at: process.cgroup)
    guard count > 0 else { return }
    let limit = runtime.configuration.limits.memory
    log(
      .warning,
      "\(runtime.id): the kernel's OOM killer ended \(count == 1 ? "a process" : "\(count) processes") "
        + "of it" + (limit.map { "; limits.memory is \($0)" } ?? ""))
  }

  /// A low memory report, as of a worker that the daemon itself ends.
  func keepReport(ofKernelKill runtime: WorkerRuntime) {
    let id = runtime.id
    guard let snapshot = engine.snapshot(of: id, at: EventLoop.now) else { return }
    let limit = runtime.configuration.limits.memory
    let why =
      "the kernel's OOM killer ended \(id)"
      + (limit.map { ", whose limits.memory is \($0)" } ?? ": the machine had no memory left")
    log(.error, why)
    let now = DaemonLog.timestamp()
    let record = JetsamRecord(
      id: jetsam.newID(at: now), time: now, policy: engine.policy.name,
      level: engine.pressure.name, why: CodedText("out_of_memory", why),
      budget: engine.budget.bytes,
      availableBefore: engine.available.bytes, availableAfter: engine.available.bytes,
      largest: id.name,
      workers: [
        JetsamRecord.Entry(
          name: id.name, state: snapshot.state.rawValue, band: snapshot.band,
          footprint: snapshot.footprint.bytes, peakFootprint: snapshot.peakFootprint.bytes,
          secondsSinceUse: (EventLoop.now - snapshot.lastUsed).seconds,
          victimBecause: CodedText("chosen_by_kernel", "the kernel chose it"))
      ])
    jetsam.save(record)
  }
}

import Control
import Glibc
import Lifecycle
import Linux
import Policy
import Supervision

/// The kernel's count of OOM kills at the last look at one worker's run. A cgroup without a memory controller
/// has no count; then the whole machine's count is used.
struct KernelKills {
  private var inGroup = 0
  private var onMachine: Int?
  /// How often the limits of its groups had been reached when the run began; nil: not known.
  private(set) var limits: MemoryLimitHits?

  /// A run begins.
  ///
  /// - Parameter count: what its cgroup has counted before; 0 for a new cgroup.
  mutating func begin(inGroup count: Int = 0, onMachine now: Int?, limits: MemoryLimitHits?) {
    inGroup = count
    onMachine = now
    self.limits = limits
  }

  /// False: a look with these counts would find nothing, and change nothing.
  func differs(inGroup count: Int?, onMachine total: Int?) -> Bool {
    onMachine != total || count.map { $0 != inGroup } ?? false
  }

  /// How many processes of the worker the kernel has killed since the last look, as far as its cgroup counts
  /// them.
  mutating func look(inGroup count: Int?, onMachine total: Int?) -> Int {
    onMachine = total
    guard let count else { return 0 }
    // A controller that was turned off and on again counts from 0.
    let new = count < inGroup ? count : count - inGroup
    inGroup = count
    return new
  }

  /// Whether the kernel may have ended the worker since the last look.
  func hasKilled(inGroup count: Int?, onMachine total: @autoclosure () -> Int?) -> Bool {
    if let count { return count > inGroup }
    guard let before = onMachine, let now = total() else { return false }
    return now > before
  }
}

/// The kernel's counts. Tests provide their own.
struct KernelKillCounts {
  /// nil: there is no cgroup, or it has no count.
  var inGroup: (WorkerCgroup?) -> Int?
  var onMachine: () -> Int?
  /// How often the limits of the cgroup and of those around it were reached; nil: not known.
  var limits: (WorkerCgroup?) -> MemoryLimitHits? = { _ in nil }
  /// For how long tasks have been stalled on memory until the last sample, in microseconds: the kernel tries to free
  /// memory before it ends a process. nil: not known.
  var memoryStall: () -> UInt64? = { nil }
  /// Whether the worker's own process is on its way out. It may take seconds, because its memory has to be freed.
  var isEnding: (WorkerProcess) -> Bool = { $0.isEnding }

  static func kernel(memoryStall: @escaping () -> UInt64?) -> KernelKillCounts {
    KernelKillCounts(
      inGroup: { $0?.killedForMemory() }, onMachine: MemoryInfo.killedForMemory,
      limits: { $0.flatMap { MemoryLimitHits.read(from: $0.path) } }, memoryStall: memoryStall)
  }
}

/// The machine's count, which isn't read again while nothing has been stalled on memory.
private struct MachineKills {
  private var count: Int?
  private var stall: UInt64?
  /// A process may be killed a moment after the stall that led to it: so there is one more look.
  private var isSettled = false

  mutating func read(_ counts: KernelKillCounts) -> Int? {
    let now = counts.memoryStall()
    if let now, now == stall, isSettled { return count }
    isSettled = now == stall
    stall = now
    count = counts.onMachine()
    return count
  }
}

/// Notices when the kernel's OOM killer kills a worker or one of its processes, logs it, and keeps a report.
/// Belongs to the loop's thread.
final class KernelKillWatch {
  private let clock: any Timers
  private let driver: EngineDriver
  private let jetsam: JetsamKeeper
  private let counts: KernelKillCounts
  private var onMachine = MachineKills()
  private let log: (DaemonLog.Priority, String) -> Void

  init(
    clock: any Timers, driver: EngineDriver, jetsam: JetsamKeeper,
    counts: KernelKillCounts,
    log: @escaping (DaemonLog.Priority, String) -> Void
  ) {
    self.clock = clock
    self.driver = driver
    self.jetsam = jetsam
    self.counts = counts
    self.log = log
  }

  /// A run has begun.
  func begin(_ worker: WorkerUnit) {
    worker.kernelKills.begin(
      onMachine: counts.onMachine(), limits: counts.limits(worker.process?.cgroup))
  }

  /// A run that an earlier daemon or another supervisor started continues: its cgroup has counted earlier
  /// kills.
  func adopt(_ worker: WorkerUnit) {
    let cgroup = worker.process?.cgroup
    worker.kernelKills.begin(
      inGroup: counts.inGroup(cgroup) ?? 0, onMachine: counts.onMachine(),
      limits: counts.limits(cgroup))
  }

  /// At each sample: the kernel may kill one process of a worker, and leave the others.
  func lookForKernelKills(of worker: WorkerUnit) {
    guard let process = worker.process else { return }
    let inGroup = counts.inGroup(process.cgroup)
    // The machine's count is used only if the cgroup has none.
    let total = inGroup == nil ? onMachine.read(counts) : nil
    // A kill that ends the worker itself is left to `status`, which is asked when its end has been noticed.
    guard worker.kernelKills.differs(inGroup: inGroup, onMachine: total), !counts.isEnding(process)
    else { return }
    let count = worker.kernelKills.look(inGroup: inGroup, onMachine: total)
    guard count > 0 else { return }
    let limit = worker.configuration.limits.memory
    log(
      .warning,
      "\(worker.id): the kernel's OOM killer killed \(count == 1 ? "1 process" : "\(count) processes") "
        + "of it" + (limit.map { " (limits.memory \($0))" } ?? ""))
  }

  /// How a run has ended. Before its cgroup is removed.
  func status(_ exit: WorkerExit, of worker: WorkerUnit) -> ExitStatus {
    guard exit == .signaled(SIGKILL), !worker.isKilled,
      worker.kernelKills.hasKilled(
        inGroup: counts.inGroup(worker.process?.cgroup), onMachine: counts.onMachine())
    else { return ExitStatus(exit) }
    return .outOfMemory
  }

  /// What had no memory left: the worker's own limit, a cgroup that it is in, or the machine.
  static func cause(
    before: MemoryLimitHits?, now: MemoryLimitHits?, group: String?, limit: ByteCount?
  ) -> String {
    let ownLimit = limit.map { "over its limits.memory, \($0)" }
    guard let before, let now else {
      return ownLimit ?? "the machine, or a cgroup that it is in, was out of memory"
    }
    if let reached = now.reached(since: before) {
      let limitOfGroup = "over the memory limit of the cgroup \(reached)"
      return reached == group ? ownLimit ?? limitOfGroup : limitOfGroup
    }
    return now.mayHaveHiddenLimits
      ? "the machine, or a cgroup outside of this container, was out of memory"
      : "the machine was out of memory"
  }

  /// A jetsam report, as of a worker that the daemon itself ends.
  func keepReport(ofKernelKill worker: WorkerUnit) {
    let id = worker.id
    let engine = driver.state
    guard let snapshot = engine.snapshot(of: id, at: clock.now) else { return }
    let cgroup = worker.process?.cgroup
    let cause = Self.cause(
      before: worker.kernelKills.limits, now: counts.limits(cgroup), group: cgroup?.path,
      limit: worker.configuration.limits.memory)
    let why = "the kernel's OOM killer killed \(id): \(cause)"
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
          secondsSinceUse: (clock.now - snapshot.lastUsed).seconds,
          victimBecause: CodedText("chosen_by_kernel", "chosen by the kernel"))
      ])
    jetsam.saveWithProcesses(record)
  }
}

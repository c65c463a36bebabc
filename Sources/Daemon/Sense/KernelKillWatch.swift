import Control
import Glibc
import Lifecycle
import Linux
import Policy
import Supervision

/// The kernel's counts of OOM kills at the last check of one worker's run. A cgroup without a
/// memory controller has no count. The whole machine's count is used then.
struct KernelKills {
  private var inGroup = 0
  private var onMachine: Int?
  /// How often the limits of the worker's cgroups had been reached when the run began; nil if that
  /// isn't known.
  private(set) var limits: MemoryLimitHits?

  /// Records the counts when a run begins.
  ///
  /// - Parameter count: what the worker's cgroup has counted before; 0 for a new cgroup.
  mutating func begin(inGroup count: Int = 0, onMachine now: Int?, limits: MemoryLimitHits?) {
    inGroup = count
    onMachine = now
    self.limits = limits
  }

  /// Whether the counts have changed. If not, a check with them would find nothing and change
  /// nothing.
  func differs(inGroup count: Int?, onMachine total: Int?) -> Bool {
    onMachine != total || count.map { $0 != inGroup } ?? false
  }

  /// The number of the worker's processes that the kernel has killed since the last check, if its
  /// cgroup counts them; else 0.
  mutating func consume(inGroup count: Int?, onMachine total: Int?) -> Int {
    onMachine = total
    guard let count else { return 0 }
    // A controller that was turned off and on again counts from 0.
    let new = count < inGroup ? count : count - inGroup
    inGroup = count
    return new
  }

  /// Whether the kernel may have ended the worker since the last check.
  func hasKilled(inGroup count: Int?, onMachine total: @autoclosure () -> Int?) -> Bool {
    if let count { return count > inGroup }
    guard let before = onMachine, let now = total() else { return false }
    return now > before
  }
}

/// Reads the kernel's counts. Tests provide their own.
struct KernelKillCounts {
  /// The count of a cgroup; nil if there is no cgroup or it has no count.
  var inGroup: (WorkerCgroup?) -> Int?
  var onMachine: () -> Int?
  /// How often the limits of the cgroup and of those around it were reached; nil if that isn't
  /// known.
  var limits: (WorkerCgroup?) -> MemoryLimitHits? = { _ in nil }
  /// How long tasks had been stalled on memory at the last sample, in microseconds; nil if that
  /// isn't known. The kernel tries to free memory before it ends a process.
  var memoryStall: () -> UInt64? = { nil }
  /// Whether the worker's first process is exiting. That may take seconds, because its memory has
  /// to be freed.
  var isEnding: (WorkerProcess) -> Bool = { $0.isEnding }

  static func kernel(memoryStall: @escaping () -> UInt64?) -> KernelKillCounts {
    KernelKillCounts(
      inGroup: { $0?.killedForMemory() }, onMachine: MemoryInfo.killedForMemory,
      limits: { $0.flatMap { MemoryLimitHits.read(from: $0.path) } }, memoryStall: memoryStall)
  }
}

/// The machine's count. It isn't read again while nothing has been stalled on memory.
private final class MachineKills {
  private var count: Int?
  private var stall: UInt64?
  /// Whether the count was read again after the stall. A process may be killed a moment after the
  /// stall that led to it, so there is one more reading.
  private var isSettled = false

  func read(_ counts: KernelKillCounts) -> Int? {
    let now = counts.memoryStall()
    if let now, now == stall, isSettled { return count }
    isSettled = now == stall
    stall = now
    count = counts.onMachine()
    return count
  }
}

/// Detects when the kernel's OOM killer kills a worker or one of its processes, logs it, and keeps
/// a report. It belongs to the event loop's thread.
struct KernelKillWatch {
  let clock: any Timers
  let driver: EngineDriver
  let jetsam: JetsamKeeper
  let counts: KernelKillCounts
  private let onMachine = MachineKills()
  let log: (DaemonLog.Priority, String) -> Void

  /// Records that a run has begun.
  ///
  /// - Parameter isAdopted: whether an earlier daemon or another supervisor has begun it. Then its
  ///   cgroup has counted earlier kills.
  func begin(_ worker: WorkerUnit, isAdopted: Bool = false) {
    let cgroup = worker.process?.cgroup
    worker.kernelKills.begin(
      inGroup: isAdopted ? counts.inGroup(cgroup) ?? 0 : 0, onMachine: counts.onMachine(),
      limits: counts.limits(cgroup))
  }

  /// Checks a worker at each sample. The kernel may kill one process of a worker and leave the
  /// others.
  func checkForKernelKills(of worker: WorkerUnit) {
    guard let process = worker.process else { return }
    let inGroup = counts.inGroup(process.cgroup)
    // The machine's count is used only if the cgroup has none.
    let total = inGroup == nil ? onMachine.read(counts) : nil
    // If the kill ends the worker itself, `status` reports it: that is called when the end has been
    // noticed.
    guard worker.kernelKills.differs(inGroup: inGroup, onMachine: total), !counts.isEnding(process)
    else { return }
    let count = worker.kernelKills.consume(inGroup: inGroup, onMachine: total)
    guard count > 0 else { return }
    let limit = worker.configuration.limits.memory
    log(
      .warning,
      "\(worker.id): the kernel's OOM killer killed "
        + "\(counted(count, "process", ending: "es")) of it"
        + (limit.map { " (limits.memory \($0))" } ?? ""))
  }

  /// How a run has ended. Call it before the run's cgroup is removed.
  func status(_ exit: WorkerExit, of worker: WorkerUnit) -> ExitStatus {
    guard exit == .signaled(SIGKILL), !worker.isKilled,
      worker.kernelKills.hasKilled(
        inGroup: counts.inGroup(worker.process?.cgroup), onMachine: counts.onMachine())
    else { return ExitStatus(exit) }
    return .outOfMemory
  }

  /// The memory that was exhausted: the worker's own limit, that of a cgroup around it, or the
  /// machine's.
  static func cause(
    before: MemoryLimitHits?, now: MemoryLimitHits?, group: String?, limit: ByteCount?
  ) -> String {
    let workerLimit = limit.map { "over its limits.memory, \($0)" }
    guard let before, let now else {
      return workerLimit ?? "the machine, or a cgroup that it is in, was out of memory"
    }
    if let reached = now.reached(since: before) {
      let limitOfGroup = "over the memory limit of the cgroup \(reached)"
      return reached == group ? workerLimit ?? limitOfGroup : limitOfGroup
    }
    return now.mayHaveHiddenLimits
      ? "the machine, or a cgroup outside of this container, was out of memory"
      : "the machine was out of memory"
  }

  /// Keeps a jetsam report of a worker that the kernel ended, as of one that the daemon itself
  /// ends.
  func keepReport(ofKernelKill worker: WorkerUnit) {
    let id = worker.id
    let engine = driver.state
    guard let snapshot = engine.snapshot(of: id, at: clock.now) else { return }
    let cgroup = worker.process?.cgroup
    let cause = Self.cause(
      before: worker.kernelKills.limits, now: counts.limits(cgroup), group: cgroup?.path,
      limit: worker.configuration.limits.memory)
    let reason = "the kernel's OOM killer killed \(id): \(cause)"
    log(.error, reason)
    let now = DaemonLog.timestamp()
    let record = JetsamRecord(
      id: jetsam.newID(at: now), time: now, policy: engine.policy.name,
      level: engine.pressure.name, why: CodedText("out_of_memory", reason),
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

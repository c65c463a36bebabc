import Lifecycle
import Linux
import Policy

/// Reports the machine's memory to the engine, within the limits of cgroups: at each sample, and at
/// once if the kernel reports that a stall threshold is passed (PSI triggers). It belongs to the
/// event loop's thread.
final class PressureMonitor {
  /// Reads the kernel's reports about memory. Tests provide their own.
  struct Readings {
    /// The machine's memory; nil if there is no /proc.
    var memory: () -> MemoryInfo?
    /// The stalls of the cgroup with this directory, or of the machine; nil if there is no PSI.
    var stall: (_ group: String?) -> PressureStall?
    /// Opens a descriptor that polls `POLLPRI` while the stall within the window exceeds the
    /// threshold.
    var trigger:
      (_ kind: PressureTrigger.Kind, _ stall: Duration, _ window: Duration, _ group: String?)
        throws(PressureTriggerError) -> Descriptor = {
          (kind, stall, window, group) throws(PressureTriggerError) in
          try PressureTrigger(kind, stall: stall, window: window, path: Self.stallFile(of: group))
            .descriptor
        }

    private static func stallFile(of group: String?) -> String {
      group.map { "\($0)/memory.pressure" } ?? PressureStall.systemMemoryPath
    }

    /// - Parameter workers: see `ContainingLimits`.
    static func kernel(workers: String?) -> Readings {
      // Both files are read each second. If one doesn't exist, there is nothing to report from it.
      let memory = try? KernelRecord(MemoryInfo.path)
      let pressure = try? KernelRecord(PressureStall.systemMemoryPath)
      // Without this file, swap in memory isn't recognized.
      let swaps = try? KernelRecord(SwapArea.path)
      // Without /proc no cgroup can be found.
      let limits = try? ContainingLimits(workers: workers)
      return Readings(
        memory: {
          // A file that can't be read counts as missing.
          var info = memory.flatMap { try? MemoryInfo.read($0) }
          // A file that can't be read counts as missing.
          let inMemory = swaps.flatMap { try? $0.read() }.map(SwapArea.freeInMemory) ?? 0
          if let free = info?.swapFree { info?.swapFree = max(0, free - inMemory) }
          return info.map { limits?.applied(to: $0) ?? $0 }
        },
        stall: { group in
          // A kernel without PSI reports no stalls, and neither does a cgroup of version 1.
          if let group { return try? PressureStall.read(stallFile(of: group)) }
          return pressure.flatMap { try? PressureStall.read($0) }
        })
    }
  }

  private let loop: any Timers & DescriptorWatches
  private let readings: Readings
  private let send: (Event) -> Void
  private let log: (DaemonLog.Priority, String) -> Void
  private var stalls = StallMeter()
  /// The stalls of the cgroup that limits memory.
  private var groupStalls = StallMeter()
  private var triggers: [(trigger: Descriptor, watch: EventLoop.Token)] = []
  /// The stalls in percent of the window that the last sample ended; nil if they aren't known yet
  /// or there is no PSI.
  private(set) var lastStall: (some: Double, full: Double)?
  /// How long some task had been stalled since the machine's start, at the last sample; nil if
  /// there is no PSI.
  var stalledMicroseconds: UInt64? { stalls.someTotal }
  private var rules = PressureRules()
  private var measuresMachine = false
  /// The directory of the cgroup whose limit left least memory at the last reading; nil if the
  /// machine's memory counts.
  private(set) var limitedBy: String?

  init(
    _ loop: any Timers & DescriptorWatches, _ readings: Readings,
    send: @escaping (Event) -> Void, log: @escaping (DaemonLog.Priority, String) -> Void
  ) {
    self.loop = loop
    self.readings = readings
    self.send = send
    self.log = log
  }

  /// Uses this policy from now on.
  func follow(_ policy: LifecyclePolicy) {
    rules = policy.pressure
    measuresMachine = policy.memory == .host
    openTriggers()
  }

  private func openTriggers() {
    for (trigger, watch) in triggers { loop.unwatch(trigger, watch) }
    triggers = []
    guard measuresMachine else { return }
    openTriggers(of: nil)
    if let limitedBy, readings.stall(limitedBy) != nil { openTriggers(of: limitedBy) }
  }

  private func openTriggers(of group: String?) {
    for level in PressureLevel.allCases {
      let condition = rules[level]
      for case (let kind, let stall?) in [
        (PressureTrigger.Kind.some, condition?.someStall), (.full, condition?.fullStall),
      ] { openTrigger(kind, stall: stall, level: level, of: group) }
    }
  }

  private func openTrigger(
    _ kind: PressureTrigger.Kind, stall: Stall, level: PressureLevel, of group: String?
  ) {
    do {
      let threshold = Duration.nanoseconds(
        Int64(Double(stall.window.wholeNanoseconds) * stall.percent / 100))
      // The total is read before the trigger exists, so it may be an earlier one. If it can't be
      // read, every call of the trigger counts.
      let total = readings.stall(group)?.totalMicroseconds(kind)
      var check = total.map { TriggerCheck(stall: threshold, total: $0) }
      let trigger = try readings.trigger(kind, threshold, stall.window, group)
      let watch = try loop.watch(trigger, .priority, file: #fileID, line: #line) {
        [unowned self] _ in
        let total = readings.stall(group)?.totalMicroseconds(kind)
        if total.flatMap({ check?.confirms($0) }) ?? true { send(.stalled(level)) }
        sendReading()
      }
      triggers.append((trigger, watch))
    } catch {
      log(.notice, "memory stalls are sampled once a second: no PSI trigger: \(error)")
    }
  }

  /// Reports the memory and the stalls now. Without /proc there is nothing to report.
  func sendReading() {
    guard let info = readings.memory() else { return }
    follow(limitOf: info)
    let (now, window) = (loop.now, rules.minWindow)
    lastStall = stalls.read(readings.stall(nil), at: now, window: window)
    // A stall of some task of the group is a stall of some task of the machine. But all tasks of
    // the group may be stalled while others run.
    let group = limitedBy.flatMap {
      groupStalls.read(readings.stall($0), at: now, window: window)
    }
    send(
      .memory(
        MemoryReading(
          total: ByteCount(info.total), available: ByteCount(info.available),
          someStall: lastStall?.some,
          fullStall: [lastStall?.full, group?.full].compactMap { $0 }.max(),
          swapFree: ByteCount(info.swapFree))))
  }

  private func follow(limitOf info: MemoryInfo) {
    guard info.limitedBy != limitedBy else { return }
    limitedBy = info.limitedBy
    groupStalls = StallMeter()
    openTriggers()
    log(
      .notice,
      limitedBy.map { "memory is limited to \(ByteCount(info.total)): by the cgroup \($0)" }
        ?? "memory is the machine's: no cgroup limits it any more")
  }
}

import Lifecycle
import Linux
import Policy

/// Reports the machine's memory to the engine: at each sample, and at once if the kernel reports that a stall
/// threshold is passed (PSI triggers). Belongs to the loop's thread.
final class PressureMonitor {
  /// What the kernel reports of memory. Tests provide their own.
  struct Readings {
    /// nil: there is no /proc.
    var memory: () -> MemoryInfo?
    /// nil: there is no PSI.
    var stall: () -> PressureStall?
    /// A descriptor that polls `POLLPRI` while the stall within the window exceeds the threshold.
    var trigger:
      (_ kind: PressureTrigger.Kind, _ stall: Duration, _ window: Duration)
        throws(PressureTriggerError) -> Descriptor = {
          (kind, stall, window) throws(PressureTriggerError) in
          try PressureTrigger(kind, stall: stall, window: window).descriptor
        }

    static func kernel() -> Readings {
      // Both are read each second. nil: there is no such file, and so nothing to report.
      let memory = try? KernelRecord(MemoryInfo.path)
      let pressure = try? KernelRecord(PressureStall.systemMemoryPath)
      return Readings(
        // As if there were no such file.
        memory: { memory.flatMap { try? MemoryInfo.read($0) } },
        // A kernel without PSI has no stalls to report.
        stall: { pressure.flatMap { try? PressureStall.read($0) } })
    }
  }

  private let loop: any Timers & DescriptorWatches
  private let readings: Readings
  private let send: (Event) -> Void
  private let log: (DaemonLog.Priority, String) -> Void
  private var stalls = StallMeter()
  private var triggers: [(trigger: Descriptor, watch: EventLoop.Token)] = []
  /// Percent of the window that the last sample ended; nil: not known yet, or there is no PSI.
  private(set) var lastStall: (some: Double, full: Double)?
  /// Until the last sample, of some task, since the machine's start; nil: there is no PSI.
  var stalledMicroseconds: UInt64? { stalls.someTotal }
  private var rules = PressureRules()

  init(
    _ loop: any Timers & DescriptorWatches, _ readings: Readings = .kernel(),
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
    for (trigger, watch) in triggers { loop.unwatch(trigger, watch) }
    triggers = []
    guard policy.memory == .host else { return }
    for level in PressureLevel.allCases {
      let condition = rules[level]
      for (kind, stall) in [
        (PressureTrigger.Kind.some, condition?.someStall), (.full, condition?.fullStall),
      ] {
        guard let stall else { continue }
        openTrigger(kind, stall: stall, level: level)
      }
    }
  }

  private func openTrigger(_ kind: PressureTrigger.Kind, stall: Stall, level: PressureLevel) {
    do {
      let threshold = Duration.nanoseconds(
        Int64(Double(stall.window.wholeNanoseconds) * stall.percent / 100))
      // Read before the trigger exists, so this value may be earlier. Without it every call of the trigger
      // counts.
      let total = readings.stall()?.totalMicroseconds(kind)
      var check = total.map { TriggerCheck(stall: threshold, total: $0) }
      let trigger = try readings.trigger(kind, threshold, stall.window)
      let watch = try loop.watch(trigger, .priority, file: #fileID, line: #line) {
        [unowned self] _ in
        let total = readings.stall()?.totalMicroseconds(kind)
        if total.flatMap({ check?.confirms($0) }) ?? true { send(.stalled(level)) }
        sendReading()
      }
      triggers.append((trigger, watch))
    } catch {
      log(.notice, "memory stalls are sampled once a second: no PSI trigger: \(error)")
    }
  }

  /// Without /proc there is nothing to report.
  func sendReading() {
    guard let info = readings.memory() else { return }
    lastStall = stalls.read(readings.stall(), at: loop.now, window: rules.minWindow)
    send(
      .memory(
        MemoryReading(
          total: ByteCount(info.total), available: ByteCount(info.available),
          someStall: lastStall?.some, fullStall: lastStall?.full,
          swapFree: ByteCount(info.swapFree))))
  }
}

import Lifecycle
import Linux
import Policy

/// Reports the machine's memory to the engine: at each sample, and at once if the kernel reports that a stall
/// threshold is passed (PSI triggers). Belongs to the loop's thread.
final class PressureMonitor {
  private let loop: EventLoop
  private let send: (Event) -> Void
  private let log: (DaemonLog.Priority, String) -> Void
  /// Both are read each second. nil: there is no such file, and so nothing to report.
  private let memory = try? KernelRecord(MemoryInfo.path)
  private let pressure = try? KernelRecord(PressureStall.systemMemoryPath)
  private var stalls = StallMeter()
  private var triggers: [(trigger: PressureTrigger, watch: EventLoop.Token)] = []
  /// Percent of the window that the last sample ended; nil: not known yet, or there is no PSI.
  private(set) var lastStall: (some: Double, full: Double)?
  /// Until the last sample, of some task, since the machine's start; nil: there is no PSI.
  var stalledMicroseconds: UInt64? { stalls.someTotal }
  private var rules = PressureRules()

  init(
    _ loop: EventLoop, send: @escaping (Event) -> Void,
    log: @escaping (DaemonLog.Priority, String) -> Void
  ) {
    self.loop = loop
    self.send = send
    self.log = log
  }

  /// Uses this policy from now on.
  func follow(_ policy: LifecyclePolicy) {
    rules = policy.pressure
    for (trigger, watch) in triggers { loop.unwatch(trigger.descriptor, watch) }
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
      let total = (try? PressureStall.read())?.totalMicroseconds(kind)
      var check = total.map { TriggerCheck(stall: threshold, total: $0) }
      let trigger = try PressureTrigger(kind, stall: threshold, window: stall.window)
      let watch = try loop.watch(trigger.descriptor, .priority) { [unowned self] _ in
        // The same.
        let total = (try? PressureStall.read())?.totalMicroseconds(kind)
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
    guard let info = memory.flatMap({ try? MemoryInfo.read($0) }) else { return }
    // A kernel without PSI has no stalls to report.
    let stall = pressure.flatMap { try? PressureStall.read($0) }
    lastStall = stalls.read(stall, at: EventLoop.now, window: rules.minWindow)
    send(
      .memory(
        MemoryReading(
          total: ByteCount(info.total), available: ByteCount(info.available),
          someStall: lastStall?.some, fullStall: lastStall?.full,
          swapFree: ByteCount(info.swapFree))))
  }
}

import Control
import Linux

extension Probe {
  static let ofPressure = [memoryInfo, stall, trigger]

  private static let memoryInfo = Probe(
    id: "meminfo", name: "the machine's memory", need: .required,
    lost:
      "Dormouse can't see when memory is short. A policy with `memory: { budget: SIZE }` works.",
    enable: "/proc mounted, and a kernel with MemAvailable (3.14)."
  ) { _ in
    let machine = try MemoryInfo.read()
    let info = try ContainingLimits(workers: nil).applied(to: machine)
    let text = "\(sizeText(info.available)) of \(sizeText(info.total)) available"
    guard let group = info.limitedBy else { return .works(text) }
    return .works(
      "\(text): the cgroup \(group) limits it; the machine has \(sizeText(machine.total))")
  }

  private static let stall = Probe(
    id: "psi", name: "memory stalls (PSI)",
    lost: "A policy's `stall` conditions never hold; `available_below` works.",
    enable: "a kernel with CONFIG_PSI, and psi=1 on its command line if PSI is off by "
      + "default."
  ) { _ in
    let stall = try PressureStall.read()
    return .works("\(decimal(stall.some.average10)) % of the last 10 s")
  }

  private static let trigger = Probe(
    id: "psi-trigger", name: "notification of stalls",
    lost: "Stalls are sampled once a second instead of reported at once.",
    enable: "CAP_SYS_RESOURCE for the daemon, or a kernel that permits triggers with windows of "
      + "2 s to every user."
  ) { _ in
    try triggers { window in
      _ = try PressureTrigger(stall: .milliseconds(200), window: window)
    }
  }

  /// Tries the windows of triggers; `set` sets a trigger with a window. Distributions' kernels
  /// differ here from the version that they are based on: Debian's 6.1 permits to every user what
  /// came with Linux 6.5.
  static func triggers(set: (Duration) throws -> Void) throws -> Finding {
    try set(.seconds(2))
    do { try set(.seconds(1)) } catch {
      return .works("windows of 2 s, and not of 1 s; for these it needs CAP_SYS_RESOURCE")
    }
    return .works("windows of 2 s and of 1 s")
  }
}

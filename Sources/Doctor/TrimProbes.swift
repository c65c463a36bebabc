import Control
import Glibc
import Linux

extension Probe {
  static let ofTrim = [swap, trim]

  private static let swap = Probe(
    "swap", "swap", need: .informational,
    lost: "Running workers aren't trimmed. Hibernation needs no swap: it moves memory to images.",
    enable: "a zram device, a swap file or a partition (zramctl(8), mkswap(8), swapon(8))."
  ) { _ in
    .works(try areas() == 0 ? "none, which only trims need" : "some, which only trims need")
  }

  private static let trim = Probe(
    "trim", "trimming running workers",
    lost: "`dormouse trim` and `trim:` in policies free nothing: a worker that runs keeps all of "
      + "its memory. If it is limited: a worker stands still for some milliseconds in a trim.",
    enable: "a zram device, a swap file or a partition, where no swap is on (zramctl(8), "
      + "mkswap(8), swapon(8)). For trims without a stop: CAP_SYS_NICE for the daemon and the "
      + "right to trace its workers (Linux 5.10), or a unit with Delegate=yes whose "
      + "cgroup.controllers names memory (Linux 5.19)."
  ) { examination in
    let group = try? examination.group.get().group
    return trimFinding(
      hasSwap: try areas() > 0,
      madvise: Result { try examination.pageOutChild() },
      reclaims: group.map { canWrite("\($0.path)/memory.reclaim") } ?? false,
      traces: examination.traces)
  }

  /// The finding about trims, from the mechanisms in the order in which the daemon prefers them.
  ///
  /// - Parameters:
  ///   - madvise: the outcome of process_madvise(2) on another process.
  ///   - reclaims: whether `memory.reclaim` of a worker's cgroup may be written.
  ///   - traces: whether a thread of a worker can be borrowed.
  static func trimFinding(
    hasSwap: Bool, madvise: Result<Void, any Error>, reclaims: Bool, traces: Bool
  ) -> Finding {
    let without = hasSwap ? "" : "; but no swap is on"
    let result: DoctorCheck.Result = hasSwap ? .works : .missing
    switch madvise {
    case .success:
      return Finding(
        result: result, detail: "process_madvise with MADV_PAGEOUT: workers run on\(without)")
    case .failure(_) where reclaims:
      return Finding(
        result: result, detail: "memory.reclaim of a worker's cgroup: workers run on\(without)")
    case .failure(let error) where traces:
      return Finding(
        result: hasSwap ? .limited : .missing,
        detail: "madvise by a borrowed thread of the worker, because \(error)\(without)")
    case .failure(let error):
      return .missing("\(error)\(without)")
    }
  }

  private static func areas() throws -> Int {
    try readText("/proc/swaps").split(separator: "\n").dropFirst().count
  }

  private static func canWrite(_ path: String) -> Bool { access(path, W_OK) == 0 }
}

extension Examination {
  /// Makes the kernel page out a page that a child has written. Without swap the page stays.
  fileprivate func pageOutChild() throws {
    let child = try child.get()
    guard let page = try Probe.privatePages(of: child.pid).first else {
      throw ProbeFailure("/proc/\(child.pid)/pagemap shows no pages of a child to us")
    }
    try PageRange(address: page.address, length: pageSize)
      .pageOut(of: child.pid, through: child.process.pidfd)
  }
}

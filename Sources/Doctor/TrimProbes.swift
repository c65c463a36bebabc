import Control
import Glibc
import Hibernation
import Linux

extension Probe {
  static let ofTrim = [swap, trim]

  private static let swap = Probe(
    id: "swap", name: "swap", need: .informational,
    lost: "Running workers aren't trimmed. Hibernation needs no swap: it moves memory to images.",
    enable: "a zram device, a swap file or a partition (zramctl(8), mkswap(8), swapon(8))."
  ) { _ in
    .works(SwapArea.all().isEmpty ? "none; only trims need it" : "some; only trims need it")
  }

  private static let trim = Probe(
    id: "trim", name: "trimming running workers",
    lost: "`dormouse trim` and `trim:` in policies free nothing: a worker that runs keeps all of "
      + "its memory. If it is limited: a worker stands still for some milliseconds in a trim.",
    enable: "a zram device, a swap file or a partition, where no swap is on (zramctl(8), "
      + "mkswap(8), swapon(8)); or what `userfaultfd` and `cgroup` need. For trims without a "
      + "stop: CAP_SYS_NICE for the daemon and the right to trace its workers (Linux 5.10), or a "
      + "unit with Delegate=yes whose cgroup.controllers names memory (Linux 5.19)."
  ) { examination in
    // Without a cgroup there is nothing to reclaim from; the probe of cgroups reports the error.
    let group = try? examination.group.get().group
    let swap = swapFinding(
      obstacle: Hibernator.swapObstacle(of: [getpid()]),
      madvise: Result {
        // Without swap the page stays.
        let child = try examination.child.get()
        try PageRange(address: privatePage(of: child.pid), length: pageSize)
          .pageOut(of: child.pid, through: child.process.pidfd)
      },
      reclaims: group?.canReclaim ?? false,
      borrows: examination.traces)
    let userfault = userfaultfdFinding
    let obstacle = group == nil ? "there is no cgroup for each worker" : nil
    return trimFinding(
      swap: swap, userfaultObstacle: userfault.result == .works ? obstacle : userfault.detail)
  }

  /// The finding about trims. The daemon uses userfaultfd if no swap can be used, or if a policy
  /// says so.
  ///
  /// - Parameter userfaultObstacle: the reason why userfaultfd can't be used; nil if it can.
  static func trimFinding(swap: Finding, userfaultObstacle: String?) -> Finding {
    if let userfaultObstacle {
      return Finding(
        result: swap.result, detail: "\(swap.detail); no userfaultfd: \(userfaultObstacle)")
    }
    if swap.result == .missing {
      return .works("userfaultfd, which needs no swap (\(swap.detail))")
    }
    return Finding(result: swap.result, detail: "\(swap.detail); userfaultfd works, too")
  }

  /// The finding about trims by swap, from the mechanisms in the order in which the daemon prefers
  /// them.
  ///
  /// - Parameters:
  ///   - obstacle: the reason why nothing can be moved to swap; nil if there is none.
  ///   - madvise: the outcome of process_madvise(2) on another process.
  ///   - reclaims: whether `memory.reclaim` of a worker's cgroup may be written.
  ///   - borrows: whether a thread of a worker may be borrowed.
  static func swapFinding(
    obstacle: String?, madvise: Result<Void, any Error>, reclaims: Bool, borrows: Bool
  ) -> Finding {
    let mechanism: Finding
    switch madvise {
    case .success:
      mechanism = .works("process_madvise with MADV_PAGEOUT: workers run on")
    case .failure(_) where reclaims:
      mechanism = .works("memory.reclaim of a worker's cgroup: workers run on")
    case .failure(let error) where borrows:
      mechanism = .limited("madvise by a borrowed thread of the worker (\(error))")
    case .failure(let error):
      return .missing([obstacle, "\(error)"].compactMap(\.self).joined(separator: "; "))
    }
    guard let obstacle else { return mechanism }
    return .missing("\(obstacle). With swap: \(mechanism.detail)")
  }
}

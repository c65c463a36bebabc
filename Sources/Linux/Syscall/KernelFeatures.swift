import CLinux
import Glibc

/// The features that the kernel and the permissions of this process offer. They are tried, not derived from
/// versions. They are one struct, so that `doctor` can print it and a test can remove a feature.
public struct KernelFeatures: Sendable, Hashable {
  /// System calls can be injected on this architecture.
  public var canInject: Bool
  /// PAGEMAP_SCAN (6.7).
  public var pagemapScan: Bool
  /// process_madvise(PIDFD_SELF, …, MADV_DONTNEED) with many ranges in one call (6.15).
  public var processMadviseSelf: Bool
  /// Writes to pages can be tracked (userfaultfd's asynchronous write protection, 6.7).
  public var writeTracking: Bool
  /// Why a hibernated worker would not survive its resume on this kernel; nil: nothing is known to prevent it.
  public var restoreObstacle: String?

  public init(
    canInject: Bool, pagemapScan: Bool, processMadviseSelf: Bool, writeTracking: Bool = false,
    restoreObstacle: String? = nil
  ) {
    self.restoreObstacle = restoreObstacle
    self.canInject = canInject
    self.pagemapScan = pagemapScan
    self.processMadviseSelf = processMadviseSelf
    self.writeTracking = writeTracking
  }

  public static func detect() -> KernelFeatures {
    var scans = false
    // If pagemap can't be opened, no page can be scanned.
    if let pagemap = try? Descriptor.open("/proc/self/pagemap") {
      var region = clinux_page_region()
      var end: UInt64 = 0
      scans = clinux_pagemap_scan(pagemap.raw, 0, 0, &region, 1, 8, 0, &end) >= 0
    }
    return KernelFeatures(
      canInject: clinux_registers_supported() == 1, pagemapScan: scans,
      processMadviseSelf: clinux_try_process_madvise_self() == 1,
      writeTracking: scans && clinux_try_tracking() == 1,
      restoreObstacle: triedRestoreObstacle)
  }

  /// Tried once in each process: one of the trials takes some milliseconds.
  private static let triedRestoreObstacle: String? = {
    let writes = clinux_writes_read_only_pages()
    if writes < 0 {
      return "this kernel doesn't let another process write read-only pages "
        + "(\(SystemCallError("pwrite", on: "/proc/self/mem", code: -writes))), so no resume could restore "
        + "them; boot with proc_mem.force_override=always"
    }
    if clinux_rseq_survives_restore() == 0 {
      return "this kernel ends a process whose rseq area (restartable sequences) was restored"
    }
    return nil
  }()
}

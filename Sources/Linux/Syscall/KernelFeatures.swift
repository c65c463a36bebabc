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
  /// Which threads may write a worker's read-only pages.
  public var forcedAccess: ForcedAccess
  /// Why a hibernated worker would not survive its resume on this kernel; nil: nothing is known to prevent it.
  public var restoreObstacle: String?

  /// Why this process can't restore any worker lazily; nil: nothing is known to prevent it.
  public var lazyObstacle: String?

  public init(
    canInject: Bool, pagemapScan: Bool, processMadviseSelf: Bool, writeTracking: Bool = false,
    forcedAccess: ForcedAccess = .anyThread, restoreObstacle: String? = nil,
    lazyObstacle: String? = nil
  ) {
    self.forcedAccess = forcedAccess
    self.restoreObstacle = restoreObstacle
    self.lazyObstacle = lazyObstacle
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
      scans = clinux_pagemap_scan(pagemap.raw, 0, 0, &region, 1, 8, 0, 0, &end) >= 0
    }
    return KernelFeatures(
      canInject: clinux_registers_supported() == 1, pagemapScan: scans,
      processMadviseSelf: clinux_try_process_madvise_self() == 1,
      writeTracking: scans && clinux_try_tracking() == 1,
      forcedAccess: .tried, restoreObstacle: triedRestoreObstacle,
      lazyObstacle: triedLazyObstacle)
  }

  /// Tried once in each process.
  private static let triedLazyObstacle: String? = {
    let result = clinux_may_follow_forks()
    if result == 0 { return nil }
    if result == -EPERM { return "lazy restore takes CAP_SYS_PTRACE: a daemon of root" }
    return "userfaultfd: \(String(cString: strerror(-result)))"
  }()

  /// Tried once in each process.
  private static let triedRestoreObstacle: String? = {
    if ForcedAccess.tried == .noThread {
      return "this kernel lets no process write read-only pages of another one, so no resume could "
        + "restore them; boot without proc_mem.force_override=never"
    }
    // Where the kernel shows these areas, their pages stay. All kernels that compare them show them.
    if KernelTrial.asTracer.showsRseq < 0, clinux_rseq_survives_restore() == 0 {
      return "this kernel ends a process whose rseq area (restartable sequences) was restored, and "
        + "doesn't show where that area is"
    }
    return nil
  }()
}

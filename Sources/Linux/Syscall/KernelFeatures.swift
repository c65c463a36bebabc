import CLinux
import Glibc

/// The features that the kernel and the permissions of this process offer. They are found by
/// trying, not by the kernel's version. They are one struct, so that `doctor` can print them and a
/// test can remove a feature.
public struct KernelFeatures: Sendable, Hashable {
  /// True if system calls can be injected on this architecture.
  public var canInject: Bool
  /// True if the kernel has PAGEMAP_SCAN (Linux 6.7).
  public var pagemapScan: Bool
  /// True if process_madvise(PIDFD_SELF, …, MADV_DONTNEED) works with many ranges in one call
  /// (Linux 6.15).
  public var processMadviseSelf: Bool
  /// True if writes to pages can be tracked (userfaultfd's asynchronous write protection, Linux
  /// 6.7).
  public var writeTracking: Bool
  /// The threads that may write a worker's read-only pages.
  public var forcedAccess: ForcedAccess
  /// The reason why a hibernated worker would not survive its resume on this kernel; nil if no
  /// obstacle is known.
  public var restoreObstacle: String?

  /// The reason why this process can't use userfaultfd in full, and so can't restore any worker
  /// lazily or trim it to an image; nil if no obstacle is known.
  public var lazyObstacle: String?
  /// True if this process uses userfaultfd by the package's service (`UserfaultService`).
  public var needsUserfaultService: Bool
  /// True if a process whose memory is moved has to permit tracing to a later daemon
  /// (`Injector.mapScratch`).
  public var permitsTracing: Bool

  /// Tries the features. Some trials fork a child and take some milliseconds.
  public static func detect() -> KernelFeatures {
    var scans = false
    // If pagemap can't be opened, no page can be scanned with it.
    if let pagemap = try? Descriptor.open("/proc/self/pagemap") {
      var region = clinux_page_region()
      var end: UInt64 = 0
      scans = clinux_pagemap_scan(pagemap.raw, 0, 0, &region, 1, 8, 0, 0, &end) >= 0
    }
    let lazyAccess = triedLazyAccess
    return KernelFeatures(
      canInject: clinux_registers_supported() == 1, pagemapScan: scans,
      processMadviseSelf: clinux_try_process_madvise_self() == 1,
      writeTracking: scans && clinux_try_tracking() == 1,
      forcedAccess: .tried, restoreObstacle: triedRestoreObstacle,
      lazyObstacle: lazyAccess.obstacle, needsUserfaultService: lazyAccess.needsService,
      permitsTracing: Yama.current.forbidsStrangers)
  }

  /// The result of the trial, which runs once in each process. It waits if the package's service
  /// for userfaultfd doesn't answer (`UserfaultService`).
  private static let triedLazyAccess: (obstacle: String?, needsService: Bool) = {
    let result = clinux_may_follow_forks()
    if result == 0 { return (nil, false) }
    guard result == -EPERM else {
      return ("userfaultfd: \(errorText(-result))", false)
    }
    do throws(UserfaultService.Failure) {
      try UserfaultService.tryOut()
      return (nil, true)
    } catch { return ("userfaultfd takes root or the package's service: \(error)", false) }
  }()

  /// The result of the trials, which run once in each process.
  private static let triedRestoreObstacle: String? = {
    if ForcedAccess.tried == .noThread {
      return "this kernel lets no process write read-only pages of another one, so no resume could "
        + "restore them; boot without proc_mem.force_override=never"
    }
    // If the kernel shows the rseq areas to a tracer, Dormouse leaves their pages in place. All
    // kernels that compare the areas show them.
    if KernelTrial.asTracer.showsRseq < 0, clinux_rseq_survives_restore() == 0 {
      return "this kernel ends a process whose rseq area (restartable sequences) was restored, and "
        + "doesn't show where that area is"
    }
    return nil
  }()
}

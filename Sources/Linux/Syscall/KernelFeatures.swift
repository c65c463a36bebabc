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

  public init(
    canInject: Bool, pagemapScan: Bool, processMadviseSelf: Bool, writeTracking: Bool = false
  ) {
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
      writeTracking: scans && clinux_try_tracking() == 1)
  }
}

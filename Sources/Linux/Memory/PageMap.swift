import CLinux
import Glibc

/// Finds the pages that belong to one process alone: present, anonymous (or a private copy of a
/// file's page), and mapped by no other process.
///
/// PAGEMAP_SCAN (Linux 6.7) finds the anonymous ones quickly even in huge sparse mappings. It
/// doesn't distinguish exclusive pages from pages that a fork shares, so bit 56 of
/// /proc/PID/pagemap is read for the pages that it finds. On older kernels only pagemap is used.
public struct PageMap: Sendable {
  let descriptor: Descriptor
  let canScan: Bool

  /// - Parameter useScan: `false`: PAGEMAP_SCAN isn't used, as on a kernel without it.
  public init(pid: Int32, useScan: Bool = true) throws(SystemCallError) {
    descriptor = try Descriptor.open("/proc/\(pid)/pagemap")
    canScan = useScan && PageMap.scanIsSupported(descriptor)
  }

  private static func scanIsSupported(_ pagemap: Descriptor) -> Bool {
    var region = clinux_page_region()
    var end: UInt64 = 0
    return clinux_pagemap_scan(pagemap.raw, 0, 0, &region, 1, presentCategory, 0, 0, &end) >= 0
  }

  /// Returns the runs of exclusive private pages between two addresses, in ascending order.
  public func privatePages(
    from start: UInt64, to end: UInt64
  ) throws(SystemCallError) -> [PageRange] {
    var runs: [PageRange] = []
    if canScan {
      // One read covers ranges that lie close together, because reading some more entries costs
      // less than another call.
      var pending: (start: UInt64, end: UInt64)?
      for candidate in try scan(from: start, to: end) {
        if let run = pending, candidate.start > run.end + 128 * pageSize {
          try appendExclusive(from: run.start, to: run.end, to: &runs)
          pending = nil
        }
        pending = (pending?.start ?? candidate.start, candidate.end)
      }
      if let run = pending { try appendExclusive(from: run.start, to: run.end, to: &runs) }
    } else {
      try appendExclusive(from: start, to: end, to: &runs)
    }
    return runs
  }

  /// Guard regions (MADV_GUARD_INSTALL, Linux 6.13); PAGEMAP_SCAN shows them from Linux 6.15 on.
  private static let guardCategory: UInt64 = 1 << 8

  /// False if there is no such memory any more: the process has ended, or executes another program.
  public var hasMemory: Bool {
    var entry: UInt64 = 0
    // An unaligned read fails if there is memory, before it waits for a lock of that.
    return pread(descriptor.raw, &entry, 8, 1) != 0
  }

  /// Whether guard pages can be seen.
  public var showsGuardPages: Bool {
    // An unknown category is an error.
    canScan && (try? scan(from: 0, to: pageSize, required: Self.guardCategory, excluded: 0)) != nil
  }

  /// Returns the guard pages of a range.
  public func guardPages(in range: PageRange) throws(SystemCallError) -> [PageRange] {
    try scan(from: range.address, to: range.end, required: Self.guardCategory, excluded: 0).map {
      PageRange(from: $0.start, to: $0.end)
    }
  }

  static let presentCategory = UInt64(CLINUX_PAGE_IS_PRESENT)
  static let excludedCategories =
    UInt64(CLINUX_PAGE_IS_FILE) | UInt64(CLINUX_PAGE_IS_PFNZERO)

  /// Returns the runs of pages with all categories of `required`, none of `excluded`, and one of
  /// `anyOf` if that isn't 0.
  func scan(
    from start: UInt64, to end: UInt64, required: UInt64 = presentCategory,
    excluded: UInt64 = excludedCategories, anyOf: UInt64 = 0
  ) throws(SystemCallError) -> [clinux_page_region] {
    var regions: [clinux_page_region] = []
    var buffer = [clinux_page_region](repeating: clinux_page_region(), count: 512)
    var position = start
    while position < end {
      var walkEnd: UInt64 = 0
      let count = try shim("PAGEMAP_SCAN") {
        clinux_pagemap_scan(
          descriptor.raw, position, end, &buffer, Int32(buffer.count), required, excluded,
          anyOf, &walkEnd)
      }
      regions += buffer[..<Int(count)]
      guard walkEnd > position else { break }
      position = walkEnd
    }
    return regions
  }

  // The bits are defined in Documentation/admin-guide/mm/pagemap.rst of the kernel.
  static let present: UInt64 = 1 << 63
  static let swapped: UInt64 = 1 << 62
  private static let fileOrShared: UInt64 = 1 << 61
  private static let exclusive: UInt64 = 1 << 56

  private func appendExclusive(
    from start: UInt64, to end: UInt64, to runs: inout [PageRange]
  ) throws(SystemCallError) {
    try appendPages(from: start, to: end, to: &runs) { entry in
      entry & Self.present != 0 && entry & Self.fileOrShared == 0 && entry & Self.exclusive != 0
    }
  }

  /// Appends the runs of pages whose entries in /proc/PID/pagemap fulfil a condition.
  func appendPages(
    from start: UInt64, to end: UInt64, to runs: inout [PageRange],
    where isWanted: (_ entry: UInt64) -> Bool
  ) throws(SystemCallError) {
    // Most runs have only a few pages.
    var entries = [UInt64](repeating: 0, count: min(8192, Int((end - start) / pageSize)))
    var position = start
    while position < end {
      let count = min(entries.count, Int((end - position) / pageSize))
      let length = try systemCall("read", on: "pagemap") {
        pread(descriptor.raw, &entries, count * 8, off_t(position / pageSize * 8))
      }
      if length <= 0 { return }
      for entry in entries[..<(length / 8)] {
        if isWanted(entry) { runs.appendBehind(PageRange(address: position, length: pageSize)) }
        position += pageSize
      }
    }
  }
}

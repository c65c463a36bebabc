import CLinux
import Glibc

extension PageMap {
  /// Runs of pages that aren't empty: memory of any kind, the shared zero page, or a place in swap.
  /// UFFDIO_COPY refuses exactly these.
  public func populatedPages(
    from start: UInt64, to end: UInt64
  ) throws(SystemCallError) -> [PageRange] {
    var runs: [PageRange] = []
    guard canScan else {
      try appendPopulated(from: start, to: end, to: &runs)
      return runs
    }
    for region in try scan(
      from: start, to: end, required: 0, excluded: 0, anyOf: Self.populatedCategories)
    {
      runs.appendBehind(PageRange(from: region.start, to: region.end))
    }
    return runs
  }

  /// Runs of pages that aren't empty in any of these ranges.
  ///
  /// The kernel is asked once for all of them together, and not for each: node has a mapping for every
  /// 256 KB of its heap, and the calls for 300 MB took half of the time before it ran again.
  ///
  /// - Parameter ranges: all of them are registered with one `Userfault`.
  public func populatedPages(
    inRegistered ranges: [PageRange]
  ) throws(SystemCallError) -> [PageRange] {
    let ranges = ranges.union()
    guard let first = ranges.first, let last = ranges.last else { return [] }
    var runs: [PageRange] = []
    guard canScan, try isTracked(first.address) else {
      for range in ranges { runs += try populatedPages(from: range.address, to: range.end) }
      return runs
    }
    // The kernel passes over mappings without this category, so those in between cost nothing, whatever their size.
    let found = try scan(
      from: first.address, to: last.end, required: UInt64(CLINUX_PAGE_IS_WPALLOWED), excluded: 0,
      anyOf: Self.populatedCategories)
    return found.map { PageRange(from: $0.start, to: $0.end) }.intersection(with: ranges)
  }

  private static let populatedCategories =
    UInt64(CLINUX_PAGE_IS_PRESENT) | UInt64(CLINUX_PAGE_IS_SWAPPED)

  /// A userfaultfd records the writes to the mapping with this page.
  private func isTracked(_ page: UInt64) throws(SystemCallError) -> Bool {
    let required = UInt64(CLINUX_PAGE_IS_WPALLOWED)
    return try !scan(from: page, to: page + pageSize, required: required, excluded: 0).isEmpty
  }

  private func appendPopulated(
    from start: UInt64, to end: UInt64, to runs: inout [PageRange]
  ) throws(SystemCallError) {
    let swapped: UInt64 = 1 << 62
    var entries = [UInt64](repeating: 0, count: 8192)
    var position = start
    while position < end {
      let wanted = min(entries.count, Int((end - position) / pageSize))
      let got = try systemCall("read", on: "pagemap") {
        pread(descriptor.raw, &entries, wanted * 8, off_t(position / pageSize * 8))
      }
      if got <= 0 { return }
      for entry in entries[..<(got / 8)] {
        if entry & (Self.present | swapped) != 0 {
          runs.appendBehind(PageRange(address: position, length: pageSize))
        }
        position += pageSize
      }
    }
  }
}

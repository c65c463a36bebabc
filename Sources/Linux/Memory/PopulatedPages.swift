import CLinux
import Glibc

extension PageMap {
  /// Returns the runs of pages that aren't empty: memory of any kind, the shared zero page, or a
  /// page in swap. UFFDIO_COPY refuses exactly these.
  public func populatedPages(
    from start: UInt64, to end: UInt64
  ) throws(SystemCallError) -> [PageRange] {
    var runs: [PageRange] = []
    guard canScan else {
      try appendPages(from: start, to: end, to: &runs) { $0 & (Self.present | Self.swapped) != 0 }
      return runs
    }
    for region in try scan(
      from: start, to: end, required: 0, excluded: 0, anyOf: Self.populatedCategories)
    {
      runs.appendBehind(PageRange(from: region.start, to: region.end))
    }
    return runs
  }

  /// Returns the runs of pages that aren't empty in any of these ranges.
  ///
  /// The kernel is asked once for all ranges together, and not for each. node has a mapping for
  /// every 256 KB of its heap, and for 300 MB the calls took half of the time before it ran again.
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
    // The kernel skips mappings without this category, so those between the ranges cost nothing,
    // whatever their size.
    let regions = try scan(
      from: first.address, to: last.end, required: UInt64(CLINUX_PAGE_IS_WPALLOWED), excluded: 0,
      anyOf: Self.populatedCategories)
    return regions.map { PageRange(from: $0.start, to: $0.end) }.intersection(with: ranges)
  }

  private static let populatedCategories =
    UInt64(CLINUX_PAGE_IS_PRESENT) | UInt64(CLINUX_PAGE_IS_SWAPPED)

  /// Whether a userfaultfd records the writes to the mapping that contains this page.
  private func isTracked(_ page: UInt64) throws(SystemCallError) -> Bool {
    let required = UInt64(CLINUX_PAGE_IS_WPALLOWED)
    return try !scan(from: page, to: page + pageSize, required: required, excluded: 0).isEmpty
  }
}

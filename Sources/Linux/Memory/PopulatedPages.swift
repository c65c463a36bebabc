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
    for category in [CLINUX_PAGE_IS_PRESENT, CLINUX_PAGE_IS_SWAPPED] {
      for region in try scan(from: start, to: end, required: UInt64(category), excluded: 0) {
        runs.append(PageRange(from: region.start, to: region.end))
      }
    }
    return runs
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

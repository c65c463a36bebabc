import CLinux
import Glibc

/// The private pages of a process that can be moved to swap, and those that are there. Shared
/// memory and pages of files don't belong to them.
public enum SwappablePages {
  /// Returns the pages that are in RAM and that no other process maps, as a set. The kernel doesn't
  /// move a page that a fork shares, nor locked memory (mlock).
  public static func resident(
    of pid: Int32, useScan: Bool = true
  ) throws(SystemCallError) -> [PageRange] {
    let mappings = try MemoryMapping.all(of: pid).filter { $0.canBeSwapped && $0.anonymous > 0 }
    let pages = try PageMap(pid: pid, useScan: useScan)
    var runs: [PageRange] = []
    for mapping in mappings {
      let exclusive = try pages.privatePages(from: mapping.start, to: mapping.end)
      for run in joined(exclusive) { runs.appendBehind(run) }
    }
    return runs
  }

  /// Joins runs of pages of one mapping between which there are only a few others: these are in
  /// swap already, or stay. One long run costs fewer calls.
  private static func joined(_ runs: [PageRange]) -> [PageRange] {
    var result: [PageRange] = []
    for run in runs {
      if let last = result.indices.last, run.address - result[last].end <= 16 * pageSize {
        result[last].length = run.end - result[last].address
      } else {
        result.append(run)
      }
    }
    return result
  }

  /// Returns the pages that are in swap, as a set.
  public static func swapped(
    of pid: Int32, useScan: Bool = true
  ) throws(SystemCallError) -> [PageRange] {
    let mappings = try MemoryMapping.all(of: pid).filter { !$0.shared && $0.swapped > 0 }
    let pages = try PageMap(pid: pid, useScan: useScan)
    var runs: [PageRange] = []
    for mapping in mappings {
      for run in try pages.swappedPages(from: mapping.start, to: mapping.end) {
        runs.appendBehind(run)
      }
    }
    return runs
  }

  /// Brings the swapped pages of a process back into RAM: a byte of each is read. The process isn't
  /// stopped. A page that can't be read stays; the process may just have unmapped it.
  ///
  /// - Parameter deadline: pages that aren't read by then stay in swap.
  public static func readBack(
    _ memory: ProcessMemory, useScan: Bool = true, until deadline: Deadline
  ) throws(SystemCallError) {
    let pages = try swapped(of: memory.pid, useScan: useScan).flatMap { Array($0.pages) }
    var bytes = [UInt8](repeating: 0, count: bytesPerRead)
    var next = 0
    while next < pages.count, !deadline.hasPassed {
      let ranges = pages[next...].prefix(bytesPerRead).map { PageRange(address: $0, length: 1) }
      // If a page can't be read directly, the next step reads it through the file.
      let read = bytes.withUnsafeMutableBytes {
        (try? ranges.readDirectly(from: memory.pid, into: $0)) ?? 0
      }
      next += read
      if read < ranges.count {
        // The process can't read the page itself (PROT_NONE), or has unmapped it.
        _ = try? memory.readBytes(at: pages[next], count: 1)  // What can't be read stays in swap.
        next += 1
      }
    }
  }

  /// The kernel accepts at most this many ranges in a call (IOV_MAX).
  private static let bytesPerRead = 1024
}

extension MemoryMapping {
  /// Whether the mapping can have private pages that the kernel would move to swap.
  var canBeSwapped: Bool {
    let special: Flags = [.locked, .hugetlb, .deviceMemory, .pureFrames, .droppable]
    return !shared && readable && flags.isDisjoint(with: special) && !name.hasPrefix("[v")
  }
}

extension PageMap {
  /// Returns the runs of pages between two addresses that are in swap, in ascending order.
  func swappedPages(
    from start: UInt64, to end: UInt64
  ) throws(SystemCallError) -> [PageRange] {
    if canScan {
      return try scan(
        from: start, to: end, required: UInt64(CLINUX_PAGE_IS_SWAPPED), excluded: 0
      ).map { PageRange(from: $0.start, to: $0.end) }
    }
    var runs: [PageRange] = []
    try appendPages(from: start, to: end, to: &runs) { $0 & Self.swapped != 0 }
    return runs
  }
}

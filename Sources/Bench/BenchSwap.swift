import Glibc
import Linux

// The kernel's own mechanism. A stopped program is paged out on request (process_madvise(2),
// MADV_PAGEOUT), and faults its pages in again one by one.

extension BenchSubject {
  func measureSwap() throws -> Int64 {
    guard !SwapDevice.all().isEmpty else {
      throw MechanismRefusal(reason: "no swap on this machine (swapon(8), zramctl(8))")
    }
    let process = try running
    let tree = try ProcessTree.stopAll(
      root: process.identity, session: process.session, cgroup: process.cgroup,
      until: Deadline(in: .seconds(5)))
    var ranges: [Int32: [PageRange]] = [:]
    do {
      for pid in tree.pids {
        ranges[pid] = try KernelSwap.anonymousRanges(of: pid)
        try KernelSwap.pageOut(pid, ranges[pid] ?? [])
      }
      let memory = try Footprint.measure(tree.pids)
      guard memory.swapped > memory.anonymous else {
        throw MechanismRefusal(
          reason:
            "the kernel swapped out less than half of it; the swap may be full, or not permitted "
            + "for this cgroup (memory.swap.max)")
      }
    } catch {
      try tree.continueAll()
      throw error
    }
    let took = try timeFromOrder { try WakeOrder.performed { try tree.continueAll() } }
    // The other mechanisms must find the program in RAM.
    for pid in try process.tree().pids { try KernelSwap.pageIn(pid, ranges[pid] ?? []) }
    return took
  }
}

enum KernelSwap {
  static func pageOut(_ pid: Int32, _ ranges: [PageRange]) throws {
    let pidfd = try Descriptor.pidfd(of: pid)
    for range in ranges {
      do throws(SystemCallError) { try range.pageOut(of: pid, through: pidfd) } catch {
        // Locked and special mappings can't be paged out, and stay.
        if error.code == EINVAL { continue }
        guard error.code == EPERM else { throw error }
        throw MechanismRefusal(
          reason: "process_madvise(2) on another process needs CAP_SYS_NICE and permission to "
            + "trace it")
      }
    }
  }

  /// Returns the mappings that have anonymous pages. Before the paging out these include pages that
  /// are swapped already.
  static func anonymousRanges(of pid: Int32) throws -> [PageRange] {
    try MemoryMapping.all(of: pid).filter {
      !$0.shared && $0.readable && !$0.name.hasPrefix("[v") && $0.anonymous > 0
    }.map(\.range)
  }

  // MARK: and back

  static func pageIn(_ pid: Int32, _ ranges: [PageRange]) throws {
    let memory = try ProcessMemory(pid: pid)
    let pagemap = try Descriptor.open("/proc/\(pid)/pagemap")
    let buffer = UnsafeMutableRawPointer.allocate(
      byteCount: Int(pageSize), alignment: Int(pageSize))
    defer { buffer.deallocate() }
    for range in ranges {
      for address in try swapped(in: range, pagemap) {
        // Memory that the program has just unmapped can't be read, and needs no paging in.
        try? memory.read(
          [PageRange(address: address, length: pageSize)], into: buffer, direct: true)
      }
    }
  }

  /// Returns the addresses of swapped pages: their entries have bit 62 set
  /// (Documentation/admin-guide/mm/pagemap.rst).
  private static func swapped(in range: PageRange, _ pagemap: Descriptor) throws -> [UInt64] {
    let count = Int(range.length / pageSize)
    var entries = [UInt64](repeating: 0, count: count)
    let read = try entries.withUnsafeMutableBytes { bytes in
      try pagemap.read(into: bytes, at: Int64(range.address / pageSize * 8), path: "pagemap")
    }
    return entries.prefix(read / 8).enumerated().compactMap { index, entry in
      entry >> 62 & 1 == 1 ? range.address + UInt64(index) * pageSize : nil
    }
  }
}

/// A swap area: a line of /proc/swaps (swapon(8)).
struct SwapDevice: Hashable {
  var name: String
  var kind: String

  // A kernel without swap has no such file.
  static func all() -> [SwapDevice] { parse((try? readText("/proc/swaps")) ?? "") }

  static func parse(_ text: String) -> [SwapDevice] {
    text.split(separator: "\n").dropFirst().compactMap { line in
      let fields = line.split { $0 == " " || $0 == "\t" }
      guard fields.count >= 2 else { return nil }
      return SwapDevice(name: String(fields[0]), kind: String(fields[1]))
    }
  }
}

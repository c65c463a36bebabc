import Linux

/// What the kernel's khugepaged does to the memory of a process that is being hibernated, and what undoes it.
///
/// khugepaged looks for ranges of 2 MB that have at least one page that was used recently, and makes a huge page of
/// them: it fills their holes with zeros. It does this to stopped and frozen processes, too, and where huge pages are on
/// for all programs, to all memory. So pages can exist that didn't when the worker's pages were listed, and pages that
/// were freed can exist again around one that stays.
enum HugePages {
  private static let length: UInt64 = 2 << 20

  /// Pages of zeros in ranges in which khugepaged may have filled holes. A hole reads as zeros, too: such a page can be
  /// freed. One with other content was brought by the kernel from somewhere else, and stays.
  static func filledHoles(of captive: Operation.Captive) throws(SystemCallError) -> [PageRange] {
    guard let pages = captive.pages, let plan = captive.plan else { return [] }
    let used = (plan.ranges + PagePlan.wholePages(captive.kept)).map {
      PageRange(from: $0.address / length * length, to: ($0.end + length - 1) / length * length)
    }
    let movable = captive.mappings.filter { !$0.hasFile && PagePlan.canMove($0) }.map(\.range)
    var holes: [PageRange] = []
    for range in used.union().intersection(with: movable) {
      let found = try pages.privatePages(from: range.address, to: range.end)
      for run in PagePlan.subtract(captive.kept, from: found) {
        for zeros in try zeros(in: run, of: captive.memory) { holes.appendBehind(zeros) }
      }
    }
    return holes
  }

  private static func zeros(
    in run: PageRange, of memory: ProcessMemory
  ) throws(SystemCallError) -> [PageRange] {
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(pageSize), alignment: 8)
    defer { bytes.deallocate() }
    guard let base = bytes.baseAddress else { return [] }
    var zeros: [PageRange] = []
    for address in run.pages {
      let page = PageRange(address: address, length: pageSize)
      try memory.read([page], into: base, direct: true)
      if bytes.bindMemory(to: UInt64.self).allSatisfy({ $0 == 0 }) { zeros.appendBehind(page) }
    }
    return zeros
  }

  /// Removes the marks of use from all anonymous pages of a process. khugepaged leaves ranges alone in which no page has
  /// one. No content changes.
  static func forgetUse(of tree: ProcessTree) {
    for pid in tree.pids { forgetUse(of: pid) }
  }

  static func forgetUse(of pid: Int32) {
    // A failure only costs RAM, if khugepaged comes across the process. The file of a process that isn't dumpable belongs
    // to root: another user's daemon may not write it.
    try? writeControl("/proc/\(pid)/clear_refs", "2")
  }
}

extension Operation {
  /// Frees the pages that are in the image, and what khugepaged has put between them meanwhile.
  func evict(
    _ captive: Captive, _ plan: PagePlan, with injector: inout Injector
  ) throws {
    let freed = try discard(plan.ranges, with: &injector)
    guard freed == plan.bytes else {
      throw HibernationError(
        .evicting,
        "the kernel freed \(freed) of \(plan.bytes) bytes of process \(captive.stat.pid)")
    }
    HugePages.forgetUse(of: captive.stat.pid)
    // If they aren't found or freed, the worker sleeps with some pages of zeros more.
    let holes = (try? HugePages.filledHoles(of: captive)) ?? []
    _ = try discard(holes, with: &injector)
  }

  /// Returns the bytes freed: fewer if the kernel stopped at a range that it doesn't free.
  private func discard(
    _ ranges: [PageRange], with injector: inout Injector
  ) throws -> UInt64 {
    var rest = ranges[...]
    var bytes: UInt64 = 0
    while !rest.isEmpty {
      let batch = rest.prefix(Injector.rangesPerCall)
      let freed = try injector.discard(
        batch, inOneCall: hibernator.features.processMadviseSelf)
      bytes += freed
      if freed < batch.bytes { break }
      rest = rest.dropFirst(batch.count)
      FaultPoint.evicting.pass()
    }
    return bytes
  }
}

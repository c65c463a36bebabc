import Linux

/// Undoes what the kernel's khugepaged does to the memory of a process that is being hibernated.
///
/// khugepaged searches for ranges of 2 MB that have at least one page that was used recently, and
/// makes a huge page of each: it fills the holes with zeros. It does this to stopped and frozen
/// processes, too, and to all memory if huge pages are on for all programs. So pages can exist that
/// didn't when the worker's pages were listed, and freed pages can exist again around a page that
/// stays. A huge page that is freed in part stays whole in RAM until memory is short, although the
/// process has only the remainder.
enum HugePages {
  private static let length: UInt64 = 2 << 20

  /// Returns pages of zeros in ranges in which khugepaged may have filled holes. A hole reads as
  /// zeros, too, so such a page can be freed. A page with other content was put there by the kernel
  /// for another reason, and stays.
  static func filledHoles(of seized: Operation.SeizedProcess) throws(SystemCallError) -> [PageRange]
  {
    guard let pages = seized.pages, let plan = seized.plan else { return [] }
    let used = (plan.ranges + PagePlan.wholePages(seized.kept)).map {
      PageRange(from: $0.address / length * length, to: ($0.end + length - 1) / length * length)
    }
    var holes: [PageRange] = []
    for range in used.union().intersection(with: movable(in: seized)) {
      let present = try pages.privatePages(from: range.address, to: range.end)
      for run in PagePlan.subtract(seized.kept, from: present) {
        for zeros in try zeros(in: run, of: seized.memory) { holes.appendBehind(zeros) }
      }
    }
    return holes
  }

  /// Returns the pages that stay in areas that can have huge pages.
  static func kept(by seized: Operation.SeizedProcess) -> [PageRange] {
    PagePlan.wholePages(seized.kept).intersection(with: movable(in: seized))
  }

  private static func movable(in seized: Operation.SeizedProcess) -> [PageRange] {
    seized.mappings.filter { !$0.hasFile && PagePlan.canMove($0) }.map(\.range)
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

  /// Removes the marks of use from all anonymous pages of a worker at rest. khugepaged ignores
  /// ranges in which no page has such a mark. The content of the pages doesn't change.
  static func clearUseMarks(of tree: ProcessTree) {
    // A failure only costs RAM, if khugepaged comes across the process. The file of a process that
    // isn't dumpable belongs to root: another user's daemon may not write it.
    for pid in tree.pids { try? writeControl("/proc/\(pid)/clear_refs", "2") }
  }
}

extension Operation {
  /// Frees the pages that are in the image, and the pages of zeros that khugepaged has put between
  /// them.
  func evict(
    _ seized: SeizedProcess, _ plan: PagePlan, with injector: inout Injector
  ) throws {
    // A huge page of which one small page stays would be freed only when memory is short. The
    // kernel may refuse to split it.
    _ = try advise(.coolAlone, HugePages.kept(by: seized), with: &injector)
    let freed = try advise(.free, plan.ranges, with: &injector)
    guard freed == plan.bytes else {
      throw HibernationError(
        .evicting,
        "the kernel freed \(freed) of \(plan.bytes) bytes of process \(seized.stat.pid)")
    }
    // If the holes aren't found or freed, the worker sleeps with some pages of zeros more.
    let holes = (try? HugePages.filledHoles(of: seized)) ?? []
    _ = try advise(.free, holes, with: &injector)
  }

  private func advise(
    _ advice: Injector.Advice, _ ranges: [PageRange], with injector: inout Injector
  ) throws -> UInt64 {
    var bytes: UInt64 = 0
    let batches = ranges.batches(of: Injector.rangesPerCall, bytes: Injector.bytesPerCall)
    for batch in batches {
      let done = try injector.advise(
        advice, batch, inOneCall: hibernator.features.processMadviseSelf)
      bytes += done
      if done < batch.bytes { break }
      if advice == .free { FaultPoint.evicting.pass() }
    }
    return bytes
  }
}

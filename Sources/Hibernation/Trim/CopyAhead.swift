import CLinux
import Glibc
import Linux

/// A copy of a running worker's memory, made before a trim by userfaultfd. The worker then stands
/// still only for the pages that it writes while the copy is made.
extension Hibernator {
  /// Below this number of bytes, a copy saves less time than it costs.
  private static var minLength: UInt64 { 4 << 20 }

  /// Makes a base of the worker's memory, unless there is one already. Without a base, the trim
  /// takes longer, and nothing else changes.
  ///
  /// - Returns: the number of bytes that were written.
  func copyAhead(
    _ request: TrimRequest, _ tree: ProcessTree, until deadline: Deadline
  ) throws(HibernationError) -> UInt64 {
    let (name, path) = (request.target.name, request.image.path)
    if hasUsableBase(name, tree) { return 0 }
    dropBase(of: name, for: path)
    guard features.writeTracking,
      tree.pids.reduce(0, { $0 + anonymousMemory(of: $1) }) >= Self.minLength
    else { return 0 }
    try openTrackers(request, tree, until: deadline)
    do {
      let plans = try tree.processes.enumerated().map { index, process in
        try plan(process, index, of: request)
      }
      return try writeBase(plans, of: tree, request)
    } catch {
      dropOverlays(of: name, for: path)
      // The whole copy, for which the worker would stand still, would fail as well.
      if let error = error as? SystemCallError, [ENOSPC, EDQUOT, EIO, EROFS].contains(error.code) {
        throw .from(error, in: .capturing)
      }
      // The memory may have been unmapped while it was copied. The trim then copies everything.
      return 0
    }
  }

  private func hasUsableBase(_ name: String, _ tree: ProcessTree) -> Bool {
    guard let base = bases[name], let trackers = trackers[name],
      Clocks.monotonic - base.file.made < Base.maxAge,
      tree.processes.allSatisfy({ trackers[$0.identity]?.armed.isEmpty == false }),
      tree.processes.allSatisfy({ isMostlyUnwritten($0.identity, name) }),
      let image = try? ImageReader(alone: base.file.path)  // It is made again then.
    else { return false }
    return image.chunks.allSatisfy { $0.length <= ImageLayout.overlayChunkLength }
  }

  /// True if at least two thirds of the base's pages are still as they are in memory.
  private func isMostlyUnwritten(_ process: ProcessIdentity, _ name: String) -> Bool {
    // The base is made again if that can't be read.
    guard let pages = try? PageMap(pid: process.pid, useScan: features.pagemapScan),
      let current = bases[name]?.current[process], let armed = trackers[name]?[process]?.armed
    else { return false }
    // What can't be read counts as written.
    let unwritten = armed.flatMap { (try? pages.unwrittenPages(in: $0)) ?? [] }
    return current.intersection(with: unwritten).bytes * 3 >= current.bytes * 2
  }

  /// Throws if a device may write to the memory of a process, which no tracker sees: the worker
  /// runs while it is copied.
  private func checkDevices(_ process: ProcessStat, _ mappings: [MemoryMapping]) throws {
    let directory = "/proc/\(process.pid)"
    let isDirect = try listDirectory("\(directory)/fdinfo").contains { number in
      // A descriptor may be closed meanwhile.
      guard let info = try? readText("\(directory)/fdinfo/\(number)"),
        let line = info.split(separator: "\n").first(where: { $0.hasPrefix("flags:") }),
        let flags = Int32(line.split(separator: "\t").last ?? "", radix: 8)
      else { return false }
      return flags & Int32(CLINUX_O_DIRECT) != 0 || info.contains("SqMask:")
    }
    let isPinned = try ProcessStatus.read(process.pid).pinnedBytes > 0
    if isDirect || isPinned || mappings.contains(where: { $0.name.hasPrefix("/[aio]") }) {
      throw HibernationError(.scanning, "devices may write to process \(process.pid)")
    }
  }

  /// Opens the descriptors that record the writes of processes that have none.
  private func openTrackers(
    _ request: TrimRequest, _ tree: ProcessTree, until deadline: Deadline
  ) throws(HibernationError) {
    let name = request.target.name
    let missing = tree.processes.map(\.identity).filter { trackers[name]?[$0] == nil }
    if missing.isEmpty { return }
    var borrowed = try BorrowedTrim(
      request.target, features, record: request.record, until: deadline)
    do throws(HibernationError) {
      for (identity, tracker) in try borrowed.openTrackers(in: missing) {
        trackers[name, default: [:]][identity] = TrackedProcess(tracker: tracker)
      }
    } catch {
      if borrowed.hasLostThread {
        try Self.repairTrim(record: request.record, of: request.target.root)
      }
      if error.aftermath != .intact { throw error }
    }
  }

  /// Begins to record the writes of a process, and plans the copy of its memory. The worker runs:
  /// what it writes from now on is recorded.
  private func plan(
    _ process: ProcessStat, _ index: Int, of request: TrimRequest
  ) throws -> PagePlan {
    let (name, identity) = (request.target.name, process.identity)
    guard let tracker = trackers[name]?[identity]?.tracker else {
      throw HibernationError(.scanning, "the writes of process \(process.pid) can't be tracked")
    }
    trackers[name]?[identity]?.registered = []
    trackers[name]?[identity]?.armed = []
    let mappings = try MemoryMapping.all(of: process.pid)
    let pages = try PageMap(pid: process.pid, useScan: features.pagemapScan)
    for mapping in mappings where !mapping.hasFile && PagePlan.canMove(mapping) {
      do throws(SystemCallError) { try tracker.register(mapping.range) } catch { continue }
      trackers[name]?[identity]?.registered.append(mapping.range)
      if try pages.protect(mapping.range) {
        trackers[name]?[identity]?.armed.append(mapping.range)
      }
    }
    if trackers[name]?[identity]?.armed.isEmpty != false {
      // It may have executed another program since the descriptor was opened.
      trackers[name]?[identity] = nil
      throw HibernationError(.scanning, "the writes of process \(process.pid) can't be tracked")
    }
    try checkDevices(process, mappings)
    return try PagePlan(
      process: index, mappings: mappings, pages: pages,
      keep: [process.arguments, process.environment],
      workingSet: workingSets[name]?[identity] ?? WorkingSet(), servesPages: true)
  }

  private func writeBase(
    _ plans: [PagePlan], of tree: ProcessTree, _ request: TrimRequest
  ) throws -> UInt64 {
    let (target, path) = (request.target, ImageLayout.basePath(of: request.image.path))
    let memories = try tree.processes.map { try target.memory(of: $0.identity) }
    let writer = try ImageWriter(path: path)
    do {
      try Capture(
        chunks: plans.flatMap(\.chunks).filter(\.kind.readable), memories: memories,
        writer: writer, compression: request.image.compression, access: features.forcedAccess,
        isAhead: true
      ).run(lanes: lanes)
      _ = try writer.commit(
        processes: tree.processes.map {
          ImageProcess(
            pid: $0.pid, startTime: $0.startTime, scratchAddress: 0, threads: [])
        }, durability: request.image.storage.durability)
      writer.startWriteback(dropsCache: request.image.storage.dropsCache)
    } catch {
      writer.discard()
      throw error
    }
    let base = try ImageReader(alone: path)
    guard let id = base.id else { return base.fileLength }
    bases[target.name] = Base(
      file: BaseFile(path: path, id: id, made: Clocks.monotonic), current: base.pagesOfNextBase)
    return base.fileLength
  }
}

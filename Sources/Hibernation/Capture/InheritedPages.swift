import Glibc
import Linux

/// How a trim of a trimmed worker keeps what is missing: the next image refers to the same pages of
/// the base, and gets the other ones from the earlier image, without touching the worker.
extension Operation {
  /// Finds what is missing of a process, and plans to have it filled.
  mutating func inheritPages(
    of index: Int, _ mappings: [MemoryMapping], _ pages: PageMap
  ) throws {
    guard let earlier = inherited?[processes[index].stat.identity], !earlier.missing.isEmpty
    else { return }
    // A program that the process has executed since has other memory at the same addresses.
    let registered = mappings.filter {
      !$0.hasFile && !$0.shared && $0.flags.contains(.userfault)
    }.map(\.range).withPages(of: earlier.missing)
    let present = try pages.populatedPages(inRegistered: registered)
    processes[index].missing =
      earlier.missing.intersection(with: registered).subtracting(present)
    let planned = processes[index].plan?.backgroundMappings ?? []
    processes[index].plan?.backgroundMappings =
      Set(planned).union(registered).sorted { $0.address < $1.address }
  }

  /// The missing pages of each process that the base supplies.
  func supplied(by inherited: MissingPages) -> [[PageRange]] {
    processes.map { seized in
      guard let earlier = inherited[seized.stat.identity] else { return [] }
      return inherited.image.steps.filter {
        $0.isOfBase && $0.isBackgroundFilled && $0.process == earlier.paged.index
      }.flatMap(\.ranges).union().intersection(with: seized.missing)
    }
  }

  /// Makes the memory of a trimmed worker ordinary memory: it may be freed and written to then. No
  /// thread of it runs.
  func unregister() throws(HibernationError) {
    guard let inherited else { return }
    for process in inherited.processes {
      let handle = process.paged.handle
      do throws(SystemCallError) { try handle.userfault.unregisterAllOfFrozen() } catch {
        // Memory that stayed registered would halt its next change for ever.
        if !error.meansVanished { throw .from(error, in: .evicting) }
      }
      handle.journal.reset(to: .idle)
    }
    FaultPoint.trimUnregistered.pass()
  }
}

extension MissingPages {
  /// Copies what is missing and isn't in the base. Whole chunks are copied as they are stored.
  ///
  /// - Parameter processes: those of the next image, and what each misses.
  func copyChunks(
    to writer: ImageWriter, _ processes: [(identity: ProcessIdentity, missing: [PageRange])],
    by compression: Compression
  ) throws {
    let buffer = ChunkBuffer()
    for step in image.steps where !step.isOfBase && step.isBackgroundFilled {
      let identity = image.processes[step.process].identity
      guard let index = processes.firstIndex(where: { $0.identity == identity }) else { continue }
      let missing = step.ranges.intersection(with: processes[index].missing)
      if missing.isEmpty { continue }
      var chunk = step.chunk
      (chunk.process, chunk.ranges) = (UInt32(index), missing)
      let isWhole = missing.bytes == step.ranges.bytes
      try writer.append(
        isWhole
          ? buffer.loadStored(step, of: image)
          : buffer.compress(missing, of: step, of: image, by: compression), chunk)
    }
  }
}

extension [PageRange] {
  /// The ranges that have pages of a set. Both are sorted by address.
  fileprivate func withPages(of set: [PageRange]) -> [PageRange] {
    var next = 0
    return filter { range in
      while next < set.count, set[next].end <= range.address { next += 1 }
      return next < set.count && set[next].address < range.end
    }
  }
}

import Glibc
import Linux

/// The number of bytes that the children of a trimmed worker have got within a minute.
struct ForkCost {
  /// More bytes a minute aren't worth a trim: the worker stands still for about 1 to 3 s.
  static let limit = 1 << 30
  private static let minute: Int64 = 60_000_000_000
  private var costs: [(at: Int64, length: Int)] = []

  /// Adds the cost of a fork.
  ///
  /// - Parameter now: in ns of the monotonic clock.
  /// - Returns: the cost of the last minute, in bytes.
  mutating func add(_ length: Int, at now: Int64) -> Int {
    costs.removeAll { now - $0.at > Self.minute }
    costs.append((now, length))
    return costs.reduce(0) { $0 + $1.length }
  }
}

/// How the pager of a trimmed worker handles memory that the worker has moved (mremap): what was
/// moved gets its pages while the worker is frozen, and the rest stays missing.
///
/// It is done when no chunk is being filled: the buffers are in use then.
extension Pager {
  /// The whole worker gets its pages, because of an event that a trimmed one can't survive.
  func endTrim(_ reason: String) {
    endsTrim = true
    if trimEnd?.isRequested != true { haltReason = haltReason ?? reason }
  }

  /// Lets a halted worker run again, whose other pages stay missing.
  func continueTrimmed() throws {
    _ = try completeFreeze(until: Deadline(in: .milliseconds(500)))
    if endsTrim { return }
    halt = nil
    try repairAndThaw()
  }

  /// Serves a halted worker until all of its threads are frozen, and all memory that it has moved
  /// is in place. Returns false if that wasn't reached before the deadline, or if the worker needs
  /// all of its pages.
  func completeFreeze(until deadline: Deadline) throws -> Bool {
    repeat {
      for process in processes where process.hasUnresolvedMoves { try resolveMoves(of: process) }
      // A thread that waits for a page in the kernel can't be frozen. If it can't be read whether
      // the group is frozen, it counts as running.
      while !endsTrim, (try? cgroup.isFrozen) != true, !deadline.hasPassed {
        for process in processes where !process.hasVanished {
          try serve(process, singly: false, isHalted: true)
        }
        pauseThread(for: .microseconds(50))
      }
    } while !endsTrim && processes.contains(where: \.hasUnresolvedMoves)
    for process in processes where !process.hasVanished && process.journal.isHalfFull {
      if !process.shortenJournal() { endTrim("it freed memory in too many places") }
    }
    // If it can't be read, the group counts as not frozen.
    guard !endsTrim, (try? cgroup.isFrozen) == true else { return false }
    for process in processes { try releaseDestinations(of: process) }
    return !endsTrim
  }

  /// Puts all pages in place that were moved, so that nothing of the image is at another address
  /// than in the image.
  private func resolveMoves(of process: LazyProcess) throws {
    var resolved = 0
    while true {
      // While a chunk is filled, messages of other moves may be read.
      let moved = process.layout.moves.from
      if moved.count == resolved { break }
      for chunk in process.chunks
      where image.steps[chunk].ranges.contains(where: { range in
        moved[resolved...].contains { $0.overlaps(range.address..<range.end) }
      }) {
        try fill(.unread(chunk: chunk, step: image.steps[chunk]), of: process, Destination(process))
      }
      resolved = moved.count
    }
    if process.hasVanished { return }
    process.destinations += process.layout.moves.to
    process.forgetMoves()
    if !process.shortenJournal() { endTrim("it freed memory in too many places") }
  }

  /// Makes mappings ordinary memory again that memory was moved to. They would halt the worker
  /// again at each further move. No thread may be in the kernel: it could move missing pages there.
  private func releaseDestinations(of process: LazyProcess) throws {
    if process.destinations.isEmpty || process.hasVanished { return }
    let destinations = process.destinations
    process.destinations = []
    let all = try readIfPossible { () throws(SystemCallError) in
      try MemoryMapping.all(of: process.pid)
    }
    for mapping in all ?? [] where mapping.flags.contains(.userfault) {
      let range = mapping.start..<mapping.end
      // A part of a mapping isn't released: the kernel would divide the mapping, and a later mremap
      // of the program would fail.
      guard destinations.contains(where: range.overlaps), !hasImagePages(in: range, of: process)
      else { continue }
      do throws(SystemCallError) { try process.userfault.unregister(mapping.range) } catch {
        // Without that, the next move halts it again. The process may have ended, or the kernel is
        // short of memory.
        if error.code == ENOMEM, !process.hasMemory { process.hasVanished = true }
        return
      }
    }
  }

  /// True if the mapping has pages of the image that were never moved. The next pager looks for
  /// those that are in place only where memory is registered.
  private func hasImagePages(in range: Range<UInt64>, of process: LazyProcess) -> Bool {
    process.chunks.contains { chunk in
      image.steps[chunk].ranges.contains { run in
        range.overlaps(run.address..<run.end)
          && run.pages.contains {
            range.contains($0) && process.layout.currentAddress(of: $0) != nil
          }
      }
    }
  }
}

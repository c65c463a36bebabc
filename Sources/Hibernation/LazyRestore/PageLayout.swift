import CLinux
import Linux

/// The present addresses of an image's pages, after a process has moved and dropped some of them
/// while they were missing.
struct PageLayout: Sendable {
  private enum Change {
    case moved(from: UInt64, to: UInt64, length: UInt64)
    case dropped(Range<UInt64>)
  }
  /// The pages that were dropped before the first of `changes`.
  private var dropped = DroppedPages()
  /// The changes since memory was first moved. Their order matters.
  private var changes: [Change] = []

  /// Two changes were made at the same time, and the right content of memory depends on their
  /// unknown order.
  struct Ambiguous: Error, CustomStringConvertible {
    let description: String
  }

  /// A message names memory that no process can have: its journal was changed.
  struct Impossible: Error, CustomStringConvertible {
    let description = "its journal of missing pages has an address that no process can have"
  }

  /// The end of the addresses that a message may name. No process has memory beyond it, so no sum
  /// of an address and a length overflows.
  private static let limit: UInt64 = 1 << 62

  /// The smallest page size of any machine, in bytes.
  private static let smallestPage: UInt64 = 4096

  /// True if all pages are at the addresses that they have in the image.
  var isIdentity: Bool { dropped.ranges.isEmpty && changes.isEmpty }

  /// True if some pages are at other addresses than in the image.
  var hasMoves: Bool { !changes.isEmpty }

  /// Everything that was dropped, if nothing was moved: the order of such changes doesn't matter.
  var droppedAlone: [Range<UInt64>]? { hasMoves ? nil : dropped.ranges }

  init() {}

  init(replaying batches: [[FaultJournal.Message]]) throws {
    for batch in batches { try apply(batch) }
  }

  /// Returns the present address of a page of the image, or `nil` if the process has dropped the
  /// page.
  func currentAddress(of address: UInt64) -> UInt64? {
    if dropped.contains(address) { return nil }
    var address = address
    for change in changes {
      switch change {
      case .dropped(let range): if range.contains(address) { return nil }
      case .moved(let from, let to, let length):
        if address &- from < length {
          address = to &+ (address &- from)
        } else if address &- to < length {
          return nil  // mremap's destination had been unmapped before
        }
      }
    }
    return address
  }

  /// Returns the present address of a run of the image's pages, as far as the run stays together,
  /// and the number of its `length` bytes for which that is true. The address is `nil` if the
  /// process has dropped the pages.
  func currentRun(from start: UInt64, _ length: UInt64) -> (address: UInt64?, length: UInt64) {
    var (address, length) = (start, length)
    func cut(_ edge: UInt64) { if edge > address { length = min(length, edge - address) } }
    if let next = dropped.first(endingAfter: address) {
      if next.contains(address) { return (nil, min(length, next.upperBound - address)) }
      cut(next.lowerBound)
    }
    for change in changes {
      switch change {
      case .dropped(let range):
        if range.contains(address) { return (nil, min(length, range.upperBound - address)) }
        cut(range.lowerBound)
      case .moved(let from, let to, let moved):
        if address &- from < moved {
          length = min(length, from + moved - address)
          address = to &+ (address &- from)
        } else if address &- to < moved {
          cut(from)
          return (nil, min(length, to + moved - address))
        } else {
          cut(from)
          cut(to)
        }
      }
    }
    return (address, length)
  }

  /// Returns the image's page that belongs at an address. It is `nil` if there is none, so that the
  /// address reads as zeros.
  func original(of address: UInt64) -> UInt64? {
    var address = address
    for change in changes.reversed() {
      switch change {
      case .dropped(let range): if range.contains(address) { return nil }
      case .moved(let from, let to, let length):
        if address &- to < length {
          address = from &+ (address &- to)
        } else if address &- from < length {
          return nil
        }
      }
    }
    return dropped.contains(address) ? nil : address
  }

  /// The ranges from which memory was moved, and those to which it was.
  var moves: (from: [Range<UInt64>], to: [Range<UInt64>]) {
    var (from, to): ([Range<UInt64>], [Range<UInt64>]) = ([], [])
    for case .moved(let source, let destination, let length) in changes {
      from.append(source..<(source + length))
      to.append(destination..<(destination + length))
    }
    return (from, to)
  }

  /// Forgets where memory was moved. All pages of the image that were moved must be in place: then
  /// nothing of the image is missing at the addresses that a move or a later change has touched.
  mutating func forgetMoves() {
    for change in changes {
      switch change {
      case .moved(let from, let to, let length):
        dropped.insert(from..<(from + length))
        dropped.insert(to..<(to + length))
      case .dropped(let range): dropped.insert(range)
      }
    }
    changes = []
  }

  mutating func drop(_ range: Range<UInt64>) {
    if changes.isEmpty { dropped.insert(range) } else { changes.append(.dropped(range)) }
  }

  /// Applies the changes between two moments at which no change was under way. Each thread waits
  /// until its message is read, so a batch has one call each of different threads. The kernel may
  /// have queued the messages in another order than that of the changes.
  ///
  /// A correct program can have had only this order: the memory at mremap's destination was removed
  /// from there before, by another thread's mremap or munmap. (In the other order, a thread would
  /// have used the result of a call that hadn't returned.)
  ///
  /// - Throws: `Ambiguous` or `Impossible`.
  mutating func apply(_ batch: [FaultJournal.Message]) throws {
    guard batch.allSatisfy(Self.isPossible) else { throw Impossible() }
    for message in batch where Int(message.event) == CLINUX_UFFD_REMOVE {
      drop(message.a..<max(message.a, message.b))
    }
    let moves = batch.filter { Int($0.event) == CLINUX_UFFD_REMAP }.map {
      Move($0).withoutTail(unmappedIn: batch)
    }
    for move in try Self.inOrder(moves) {
      changes.append(
        .moved(
          from: move.from.lowerBound, to: move.to.lowerBound, length: UInt64(move.from.count)))
    }
    for message in batch where Int(message.event) == CLINUX_UFFD_UNMAP {
      // A move to an address has already dropped the memory that was there before.
      for paged in Self.subtract(moves.map(\.to), from: message.a..<max(message.a, message.b)) {
        drop(paged)
      }
    }
  }

  /// The ranges that the calls of a batch have unmapped, without the destinations of moves.
  static func unmapped(by batch: [FaultJournal.Message]) -> [Range<UInt64>] {
    let destinations = batch.filter { Int($0.event) == CLINUX_UFFD_REMAP }.map { Move($0).to }
    return batch.filter { Int($0.event) == CLINUX_UFFD_UNMAP }.flatMap {
      subtract(destinations, from: $0.a..<max($0.a, $0.b))
    }
  }

  private static func isPossible(_ message: FaultJournal.Message) -> Bool {
    switch Int(message.event) {
    case CLINUX_UFFD_REMOVE, CLINUX_UFFD_UNMAP: message.a <= message.b && message.b <= limit
    case CLINUX_UFFD_REMAP:
      message.a <= limit && message.b <= limit && message.c <= limit
        && (message.a | message.b | message.c) % smallestPage == 0
    default: true
    }
  }

  /// True if the order of a move and of another change matters, and the kernel may have made the
  /// change first although its message was read later.
  ///
  /// Usually threads change different memory, and the order doesn't matter. If the other change put
  /// something at the move's source, or removed that, the move came first. If it removed memory
  /// from the move's destination, it came first exactly if memory is there now: what it leaves
  /// behind is a gap.
  ///
  /// - Parameter isMapped: true if memory is anywhere in a range, now that all messages are read.
  static func mayPrecede(
    _ later: FaultJournal.Message, _ move: FaultJournal.Message,
    isMapped: (Range<UInt64>) throws -> Bool
  ) rethrows -> Bool {
    guard Int(move.event) == CLINUX_UFFD_REMAP else { return false }
    let move = Move(move)
    let taken: Range<UInt64>
    switch Int(later.event) {
    case CLINUX_UFFD_UNMAP: taken = later.a..<max(later.a, later.b)
    case CLINUX_UFFD_REMAP:
      let later = Move(later)
      if later.from.overlaps(move.from) || later.to.overlaps(move.to) { return true }
      taken = later.from
    default: return false  // The kernel reports MADV_DONTNEED before it does it.
    }
    return try taken.overlaps(move.to) && isMapped(taken.clamped(to: move.to))
  }

  private struct Move {
    var from: Range<UInt64>
    var to: Range<UInt64>

    init(_ message: FaultJournal.Message) {
      from = message.a..<max(message.a, message.a &+ message.c)
      to = message.b..<max(message.b, message.b &+ message.c)
    }

    /// Returns the move of what is left of its source if the call has shortened it. Linux before
    /// 6.15 reports the earlier length then, and the end of the source as unmapped.
    func withoutTail(unmappedIn batch: [FaultJournal.Message]) -> Move {
      let tail = batch.first {
        Int($0.event) == CLINUX_UFFD_UNMAP && $0.b == from.upperBound && $0.a > from.lowerBound
      }
      guard let tail, tail.a < tail.b else { return self }
      var move = self
      move.from = from.lowerBound..<tail.a
      move.to = to.lowerBound..<(to.lowerBound + (tail.a - from.lowerBound))
      return move
    }
  }

  /// Sorts moves: a move whose source is another move's destination comes first.
  private static func inOrder(_ moves: [Move]) throws(Ambiguous) -> [Move] {
    var waiting = moves
    var result: [Move] = []
    for (index, move) in moves.enumerated() {
      for other in moves[(index + 1)...]
      where other.to.overlaps(move.to) || other.from.overlaps(move.from) {
        throw Ambiguous(description: "two threads moved the same memory at once")
      }
    }
    while !waiting.isEmpty {
      guard
        let next = waiting.indices.first(where: { index in
          !waiting.indices.contains {
            $0 != index && waiting[$0].from.overlaps(waiting[index].to)
          }
        })
      else { throw Ambiguous(description: "two threads moved memory to each other's place") }
      result.append(waiting.remove(at: next))
    }
    return result
  }

  private static func subtract(
    _ taken: [Range<UInt64>], from range: Range<UInt64>
  ) -> [Range<UInt64>] {
    taken.reduce([range]) { pagedProcesses, one in
      pagedProcesses.flatMap { paged -> [Range<UInt64>] in
        guard paged.overlaps(one) else { return [paged] }
        return [
          paged.lowerBound..<max(paged.lowerBound, one.lowerBound),
          min(paged.upperBound, one.upperBound)..<paged.upperBound,
        ]
      }
    }.filter { !$0.isEmpty }
  }
}

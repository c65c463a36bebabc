import CLinux
import Linux

/// Where the pages of an image are now, after a process has moved and dropped some of them while
/// they were missing.
struct PageLayout: Sendable {
  private enum Change {
    case moved(from: UInt64, to: UInt64, length: UInt64)
    case dropped(Range<UInt64>)
  }
  private var changes: [Change] = []

  /// Two changes were made at the same time, and which was first decides what memory is right.
  struct Ambiguous: Error, CustomStringConvertible {
    let description: String
  }

  var isIdentity: Bool { changes.isEmpty }

  init() {}

  init(replaying batches: [[FaultJournal.Message]]) throws(Ambiguous) {
    for batch in batches { try apply(batch) }
  }

  /// The address at which a page of the image belongs; `nil`: nowhere any more.
  func now(_ address: UInt64) -> UInt64? {
    var address = address
    for change in changes {
      switch change {
      case .dropped(let range): if range.contains(address) { return nil }
      case .moved(let from, let to, let length):
        if address &- from < length {
          address = to &+ (address &- from)
        } else if address &- to < length {
          return nil  // mremap's destination had been given up before
        }
      }
    }
    return address
  }

  /// The image's page that belongs at an address; `nil`: none, it reads as zeros.
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
    return address
  }

  /// Applies what happened between two moments at which nothing was under way. Each thread waits for
  /// its message to be read, and goes no further, so these are by different threads, one call of
  /// each. The kernel may have queued them in another order than it made the changes in.
  ///
  /// The order that a correct program can have had is this: whatever lay at mremap's destination had
  /// gone from there before, be it by another's mremap or munmap. (The other way round, a thread
  /// would have used the result of a call that hadn't returned.)
  mutating func apply(_ batch: [FaultJournal.Message]) throws(Ambiguous) {
    for message in batch where Int(message.event) == CLINUX_UFFD_REMOVE {
      changes.append(.dropped(message.a..<max(message.a, message.b)))
    }
    let moves = batch.filter { Int($0.event) == CLINUX_UFFD_REMAP }.map(Move.init)
    for move in try Self.inOrder(moves) {
      changes.append(
        .moved(
          from: move.from.lowerBound, to: move.to.lowerBound, length: UInt64(move.from.count)))
    }
    for message in batch where Int(message.event) == CLINUX_UFFD_UNMAP {
      // Where something has been moved to, what was there before was dropped with that.
      for part in Self.subtract(moves.map(\.to), from: message.a..<max(message.a, message.b)) {
        changes.append(.dropped(part))
      }
    }
  }

  private struct Move {
    let from: Range<UInt64>
    let to: Range<UInt64>

    init(_ message: FaultJournal.Message) {
      from = message.a..<max(message.a, message.a &+ message.c)
      to = message.b..<max(message.b, message.b &+ message.c)
    }
  }

  /// Those whose source is another's destination first.
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
    taken.reduce([range]) { parts, one in
      parts.flatMap { part -> [Range<UInt64>] in
        guard part.overlaps(one) else { return [part] }
        return [
          part.lowerBound..<max(part.lowerBound, one.lowerBound),
          min(part.upperBound, one.upperBound)..<part.upperBound,
        ]
      }
    }.filter { !$0.isEmpty }
  }
}

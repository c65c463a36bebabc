import CLinux
import Linux

/// Where the pages of an image are now, after a process has moved and dropped some of them while
/// they were missing.
struct Layout: Sendable {
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
  /// its message to be read, so these are by different threads, and the kernel may have queued them
  /// in another order than it made the changes in. Where that matters to a correct program, this
  /// fails.
  mutating func apply(_ batch: [FaultJournal.Message]) throws(Ambiguous) {
    var moves: [FaultJournal.Message] = []
    for message in batch {
      switch Int(message.event) {
      case CLINUX_UFFD_REMAP:
        let clash = moves.contains { other in
          [message.a, message.b].contains { one in
            [other.a, other.b].contains { two in
              one < two &+ other.c && two < one &+ message.c
            }
          }
        }
        if clash { throw Ambiguous(description: "two threads moved the same addresses at once") }
        moves.append(message)
        changes.append(.moved(from: message.a, to: message.b, length: message.c))
      case CLINUX_UFFD_REMOVE:
        changes.append(.dropped(message.a..<max(message.a, message.b)))
      case CLINUX_UFFD_UNMAP:
        drop(message.a..<max(message.a, message.b), after: moves)
      default: break
      }
    }
  }

  /// munmap's message may come behind that of an mremap to the addresses that it had freed. What was
  /// moved there stays; what was there before has been dropped by the move.
  private mutating func drop(_ range: Range<UInt64>, after moves: [FaultJournal.Message]) {
    var parts = [range]
    for move in moves {
      let kept = move.b..<max(move.b, move.b &+ move.c)
      parts = parts.flatMap { part -> [Range<UInt64>] in
        guard part.overlaps(kept) else { return [part] }
        return [
          part.lowerBound..<max(part.lowerBound, kept.lowerBound),
          min(part.upperBound, kept.upperBound)..<part.upperBound,
        ].filter { !$0.isEmpty }
      }
    }
    for part in parts where !part.isEmpty { changes.append(.dropped(part)) }
  }
}

import Synchronization
import WorkerKit

/// Purgeable contents that can be verified: each word is made from the content's number and the
/// word's index.
final class Shelf: Sendable {
  private struct Item: Sendable {
    var id: UInt64
    var data: PurgeableData
    var isHeld = false
  }
  private final class Slot: Sendable {
    let item: Mutex<Item>
    init(_ item: Item) { self.item = Mutex(item) }
  }

  private let slots = Mutex<[Slot]>([])
  private let lastID = Atomic<UInt64>(0)
  private let mayEnd = Atomic(false)

  private func make(_ bytes: Int, isHeld: Bool = false) -> Item {
    let id = lastID.add(1, ordering: .relaxed).newValue
    let data = PurgeableData(count: bytes, isHeld: isHeld) { buffer in
      for index in 0..<bytes / 8 {
        buffer.storeBytes(of: Self.word(id, index), toByteOffset: index * 8, as: UInt64.self)
      }
    }
    return Item(id: id, data: data, isHeld: isHeld)
  }

  private static func word(_ id: UInt64, _ index: Int) -> UInt64 {
    (id &+ 1) &* 0x9E37_79B9_7F4A_7C15 ^ UInt64(index)
  }

  func fill(_ count: Int, held: Int, bytes: Int) {
    slots.withLock { slots in
      slots = (0..<count + held).map { Slot(make(bytes, isHeld: $0 >= count)) }
    }
  }

  /// Returns whether the content is whole; `nil` if it was discarded. It checks every `step`th
  /// word, and the last one.
  private static func isWhole(_ item: Item, step: Int) -> Bool? {
    item.data.withContent { bytes in
      let last = bytes.count / 8 - 1
      let isRight = { bytes.load(fromByteOffset: $0 * 8, as: UInt64.self) == word(item.id, $0) }
      return stride(from: 0, to: last, by: step).allSatisfy(isRight) && isRight(last)
    }
  }

  /// Returns a text such as `whole 1, gone 2, torn 0; held 3`. Contents that are held and whole are
  /// counted apart.
  func verify() -> String {
    var (whole, gone, torn, held) = (0, 0, 0, 0)
    for slot in slots.withLock({ $0 }) {
      let item = slot.item.withLock { $0 }
      switch Self.isWhole(item, step: 1) {
      case true? where item.isHeld: held += 1
      case true?: whole += 1
      case false?: torn += 1
      case nil: gone += 1
      }
    }
    return "whole \(whole), gone \(gone), torn \(torn); held \(held)"
  }

  var summary: String { "\(slots.withLock { $0.count }) contents" }

  func endRace() { mayEnd.store(true, ordering: .relaxed) }

  /// Accesses contents on several threads, at least this often and until `endRace`. Discarded
  /// content is made again, with another size.
  func race(threads: Int, accesses: Int) async -> String {
    let counts = Mutex((accesses: 0, gone: 0, torn: 0))
    let (ended, end) = AsyncStream.makeStream(of: Void.self)
    for thread in 0..<threads {
      startThread { [self] in
        let result = run(seed: UInt64(thread), accesses: accesses / threads + 1)
        counts.withLock {
          $0.accesses += result.accesses
          $0.gone += result.gone
          $0.torn += result.torn
        }
        end.yield()
      }
    }
    var left = threads
    for await _ in ended {
      left -= 1
      if left == 0 { break }
    }
    let result = counts.withLock { $0 }
    return "accesses \(result.accesses), gone \(result.gone), torn \(result.torn)"
  }

  private func run(seed: UInt64, accesses: Int) -> (accesses: Int, gone: Int, torn: Int) {
    let slots = slots.withLock { $0 }
    var random = Random(state: seed)
    var result = (accesses: 0, gone: 0, torn: 0)
    while result.accesses < accesses || !mayEnd.load(ordering: .relaxed) {
      result.accesses += 1
      let slot = slots[Int(random.next() % UInt64(slots.count))]
      let item = slot.item.withLock { $0 }
      switch Self.isWhole(item, step: 511) {
      case true?: break
      case false?: result.torn += 1
      case nil:
        result.gone += 1
        let new = make(8 * Int(512 + random.next() % 4096))
        slot.item.withLock { $0 = new }
      }
    }
    return result
  }
}

/// A random number generator: xorshift64*, from any seed.
private struct Random {
  var state: UInt64
  init(state: UInt64) { self.state = state &* 2 &+ 1 }
  mutating func next() -> UInt64 {
    state ^= state >> 12
    state ^= state << 25
    state ^= state >> 27
    return (state &* 0x2545_F491_4F6C_DD1D) >> 11
  }
}

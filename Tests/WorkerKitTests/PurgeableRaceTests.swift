import Glibc
import Linux
import Supervision
import Synchronization
import TestSupport
import Testing

@testable import WorkerKit

/// Content that can be verified: each word is made from the content's number and the word's index.
private struct Pattern {
  static func word(_ id: UInt64, _ index: Int) -> UInt64 {
    (id &+ 1) &* 0x9E37_79B9_7F4A_7C15 ^ UInt64(index)
  }

  static func make(_ id: UInt64, words: Int, _ worker: Worker) -> PurgeableData {
    PurgeableData(count: words * 8, isHeld: false, worker: worker) { bytes in
      for index in 0..<words {
        bytes.storeBytes(of: word(id, index), toByteOffset: index * 8, as: UInt64.self)
      }
    }
  }

  /// Returns whether the content is whole; `nil` if it was discarded. It checks some words of each
  /// page, and the last word.
  static func isWhole(_ data: PurgeableData, _ id: UInt64) -> Bool? {
    data.withContent { bytes in
      var index = 0
      while index < bytes.count / 8 {
        guard bytes.load(fromByteOffset: index * 8, as: UInt64.self) == word(id, index) else {
          return false
        }
        index += 127
      }
      let last = bytes.count / 8 - 1
      return bytes.load(fromByteOffset: last * 8, as: UInt64.self) == word(id, last)
    }
  }
}

@Suite(.timeLimit(.minutes(5))) struct PurgeableRaceTests {
  /// The contents that all threads share, each with its number.
  private final class Shelf: Sendable {
    struct Content: Sendable {
      var id: UInt64
      var data: PurgeableData
    }
    final class Slot: Sendable {
      let content: Mutex<Content>
      init(_ content: Content) { self.content = Mutex(content) }
    }
    let slots: [Slot]
    let lastID = Atomic<UInt64>(0)
    let worker: Worker

    init(_ count: Int, _ worker: Worker) {
      self.worker = worker
      slots = (0..<count).map { index in
        Slot(Content(id: UInt64(index), data: Pattern.make(UInt64(index), words: 512, worker)))
      }
      lastID.store(UInt64(count), ordering: .relaxed)
    }

    func replace(_ index: Int, words: Int) {
      let id = lastID.add(1, ordering: .relaxed).newValue
      let data = Pattern.make(id, words: words, worker)
      slots[index].content.withLock { $0 = Content(id: id, data: data) }
    }
  }

  @Test func `Accesses on several threads while the daemon purges find no torn content`()
    async throws
  {
    let worker = Worker(socketPath: nil)
    let shelf = Shelf(64, worker)
    let heap = try #require(worker.purgeable.make(nil))
    // There are two purging daemons: each has a mapping of its own.
    let regions = try (0..<2).map { _ in
      try PurgeableRegion(Descriptor(owning: dup(heap.file)))
    }
    let threads = 4
    let running = Atomic(threads)
    let torn = Log<UInt64>()
    let counts = Mutex((kept: 0, gone: 0, purged: Int64(0)))
    let accesses = raceAccesses

    try await onThreads(threads + regions.count) { thread in
      guard thread < threads else {
        var purged: Int64 = 0
        var limit: Int64 = 0
        while running.load(ordering: .acquiring) > 0 {
          limit = thread > threads ? (limit + 3) % 170 : 1
          purged += regions[thread - threads].purge(atMost: limit * Int64(pageSize))
          // One daemon purges without a pause, one content at a time. The other purges more, now
          // and then.
          guard thread > threads else { continue }
          _ = regions[thread - threads].volatileBytes()
          usleep(50)
        }
        counts.withLock { $0.purged += purged }
        return
      }
      var random = TestRandom(seed: UInt64(thread))
      var (kept, gone) = (0, 0)
      for _ in 0..<accesses / threads {
        let index = Int.random(in: 0..<64, using: &random)
        let content = shelf.slots[index].content.withLock { $0 }
        switch Pattern.isWhole(content.data, content.id) {
        case true?: kept += 1
        case false?: torn.append(content.id)
        case nil:
          gone += 1
          shelf.replace(index, words: Int.random(in: 1...4096, using: &random))
        }
      }
      counts.withLock {
        $0.kept += kept; $0.gone += gone
      }
      running.subtract(1, ordering: .releasing)
    }

    let result = counts.withLock { $0 }
    #expect(torn.all == [])
    #expect(result.kept + result.gone == accesses / threads * threads)
    #expect(result.kept > 0 && result.gone > 0 && result.purged > 0)
  }

  @Test
  func `Owners discard and free contents while the daemon purges them, and no content is torn`()
    async throws
  {
    let worker = Worker(socketPath: nil)
    let heap = try #require(worker.purgeable.make(nil))
    let region = try PurgeableRegion(Descriptor(owning: dup(heap.file)))
    let running = Atomic(3)
    let torn = Log<UInt64>()
    try await onThreads(4) { thread in
      guard thread < 3 else {
        while running.load(ordering: .acquiring) > 0 { region.purge() }
        return
      }
      for turn in 0..<raceAccesses / 200 {
        let id = UInt64(turn * 4 + thread)
        let data = Pattern.make(id, words: 1 + turn % 2000, worker)
        if Pattern.isWhole(data, id) == false { torn.append(id) }
        if turn % 3 == 0 { data.discardContentIfPossible() }
        if turn % 5 == 0 { _ = data.beginContentAccess() }
        if turn % 500 == 0 { heap.discardAll() }
      }
      running.subtract(1, ordering: .releasing)
    }
    #expect(torn.all == [])
    // No page is lost: all of them can be allocated again.
    region.purge()
    _ = PurgeableData([1], worker: worker)
    #expect(heap.allocatedCount == 0)
  }
}

/// The thread sanitizer is some ten times slower. The environment asks for fewer accesses under it.
private let raceAccesses = Nightly.rounds(
  250_000, of: 1_000_000, variable: "WORKERKIT_RACE_ACCESSES")

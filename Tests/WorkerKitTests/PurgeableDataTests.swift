import Glibc
import Linux
import Supervision
import TestSupport
import Testing
import WorkerProtocol

@testable import WorkerKit

/// The daemon's side of a worker's heap, in this process.
private func region(of worker: Worker) throws -> PurgeableRegion {
  let heap = try #require(worker.purgeable.make(nil))
  return try PurgeableRegion(Descriptor(owning: dup(heap.file)))
}

@Suite(.timeLimit(.minutes(10))) struct PurgeableTests {
  private let worker = Worker(socketPath: nil)
  private let page = Int(pageSize)

  @Test func `Purgeable content begins with one access, and can be purged when it has none`() throws
  {
    let data = PurgeableData(Array("content".utf8), worker: worker)
    let region = try region(of: worker)
    #expect(region.volatileBytes() == 0)
    #expect(region.purge() == 0)
    #expect(data.withContent { String(decoding: $0, as: UTF8.self) } == "content")
    data.discardContentIfPossible()
    #expect(!data.isContentDiscarded)
    data.endContentAccess()
    #expect(region.volatileBytes() == Int64(page))
    #expect(data.beginContentAccess())
    #expect(region.purge() == 0)
    data.endContentAccess()
    #expect(region.purge() == Int64(page))
    #expect(data.isContentDiscarded)
    #expect(!data.beginContentAccess())
    #expect(data.withContent { $0.count } == nil)
    #expect(data.withMutableContent { $0.count } == nil)
  }

  @Test func `A warning discards only content that isn't held`() async {
    let held = PurgeableData(Array("held".utf8), worker: worker)
    let free = PurgeableData(Array("free".utf8), isHeld: false, worker: worker)
    await worker.simulateEnteringBackground()
    #expect(!free.isContentDiscarded)
    await worker.simulateMemoryWarning()
    #expect(free.isContentDiscarded)
    #expect(held.withContent { Array($0) } == Array("held".utf8))
  }

  @Test
  func `Content is made in its own memory, empty content stays, and an error frees the content`()
    throws
  {
    let data = PurgeableData(count: 10_000, worker: worker) { bytes in
      #expect(bytes.allSatisfy { $0 == 0 })
      bytes[9999] = 7
    }
    #expect(data.withMutableContent { $0[0] = 1 } != nil)
    #expect(data.withContent { [$0[0], $0[1], $0[9999]] } == [1, 0, 7])
    #expect(data.withContentAccess { 5 } == 5)
    let empty = PurgeableData([], worker: worker)
    #expect(empty.withContent { $0.count } == 0)
    struct Failure: Error {}
    #expect(throws: Failure.self) {
      try PurgeableData(count: 1, worker: worker) { _ in throw Failure() }
    }
  }

  @Test
  func `A slot that is used again is empty, and its old owner doesn't find the new content`()
    throws
  {
    let region = try region(of: worker)
    let old = PurgeableData(repeatElement(7, count: page), isHeld: false, worker: worker)
    #expect(region.purge() == Int64(page))
    _ = old.withContent { _ in }
    let new = PurgeableData(count: page, worker: worker) { bytes in
      #expect(bytes.allSatisfy { $0 == 0 })
      bytes.initializeMemory(as: UInt8.self, repeating: 9)
    }
    #expect(old.withContent { $0[0] } == nil)
    #expect(new.withContent { $0[0] } == 9)
  }

  @Test func `Freed contents return their memory, even while accesses are open`() throws {
    let region = try region(of: worker)
    for _ in 0..<100 {
      let data = PurgeableData(repeatElement(7, count: 64 * page), worker: worker)
      _ = data.beginContentAccess()
    }
    #expect(region.volatileBytes() == 0)
    let heap = try #require(worker.purgeable.make(nil))
    #expect(heap.allocatedCount == 0)
    var status = stat()
    fstat(heap.file, &status)
    // Only the table takes memory.
    #expect(status.st_blocks * 512 <= 8 * page)
  }

  @Test(arguments: [true, false])
  func `Without room, new content is discarded from the beginning`(_ isShared: Bool)
    throws
  {
    let mapping = try #require(
      PurgeableMapping(sizes: [1 << 20], slots: 64, isShared: isShared))
    let heap = PurgeableHeap(mapping)
    #expect((heap.file >= 0) == isShared)
    var allocations: [PurgeableHeap.Allocation] = []
    while let allocation = heap.allocate(bytes: page) { allocations.append(allocation) }
    #expect(allocations.count == 64)
    for allocation in allocations {
      heap.word(allocation).release(generation: allocation.generation)
    }
    if isShared {
      // The daemon purges the contents, and only an allocation that needs room notices it.
      let region = try PurgeableRegion(Descriptor(owning: dup(heap.file)))
      region.purge()
    } else {
      heap.discardAll()
    }
    #expect(heap.allocate(bytes: page) != nil)
    #expect(heap.allocate(bytes: 2 << 20) == nil)
    for allocation in allocations { heap.release(allocation) }
    #expect(heap.allocatedCount == 1)
  }

  @Test
  func
    `Content that a daemon was emptying when it ended is lost, and its slot isn't used again`()
    throws
  {
    let mapping = try #require(PurgeableMapping(sizes: [1 << 20], slots: 4))
    let heap = PurgeableHeap(mapping)
    let allocations = try (0..<4).map { _ in try #require(heap.allocate(bytes: page)) }
    for allocation in allocations {
      heap.bytes(allocation, count: page).initializeMemory(as: UInt8.self, repeating: 5)
      heap.word(allocation).release(generation: allocation.generation)
    }
    let interrupted = try #require(heap.word(allocations[0]).claim())
    let orphan = try #require(heap.word(allocations[1]).claim())
    let spared = try #require(heap.word(allocations[2]).claim())
    // If the owner is freed while the daemon empties its content, the slot is freed later.
    heap.release(allocations[1])
    heap.release(allocations[2])
    #expect(heap.allocate(bytes: page) == nil)
    #expect(!heap.word(allocations[0]).retain(generation: allocations[0].generation))
    heap.word(allocations[2]).spare(spared)
    let again = try #require(heap.allocate(bytes: page))
    #expect(heap.bytes(again, count: page).allSatisfy { $0 == 0 })
    heap.word(allocations[1]).empty(orphan)
    #expect(heap.allocate(bytes: page) != nil)
    #expect(heap.allocate(bytes: page) == nil)
    heap.didDisconnect()
    // The pages are freed, but aren't allocated again: the next daemon may be emptying them.
    #expect(heap.bytes(allocations[0], count: page).allSatisfy { $0 == 0 })
    #expect(!heap.word(allocations[0]).retain(generation: allocations[0].generation))
    #expect(heap.allocate(bytes: page) == nil)
    heap.word(allocations[0]).empty(interrupted)
    #expect(heap.allocate(bytes: page) != nil)
    #expect(heap.word(allocations[3]).retain(generation: allocations[3].generation))
    #expect(heap.bytes(allocations[3], count: page).allSatisfy { $0 == 5 })
  }

  @Test func `The daemon gets the descriptor of the purgeable memory once on each connection`()
    async throws
  {
    let (daemon, worker, peer) = try await KitDaemon.connected()
    let data = PurgeableData(repeatElement(7, count: 10 * page), isHeld: false, worker: worker)
    let more = PurgeableData(repeatElement(8, count: page), worker: worker)
    for turn in 0..<2 {
      #expect(try await daemon.message() == .purgeable)
      guard case .descriptor(let descriptor, _) = try await daemon.next() else {
        throw TestFailure("no descriptor")
      }
      let region = try PurgeableRegion(Descriptor(owning: descriptor))
      #expect(region.purge() == (turn == 0 ? Int64(10 * page) : 0))
      if turn == 0 {
        peer.close()
        _ = try await daemon.peer()
      }
    }
    #expect(data.isContentDiscarded)
    #expect(more.withContent { $0[0] } == 8)
  }

  @Test(arguments: 1...50 as ClosedRange<UInt64>)
  func `Pages are given out once, and free neighbours are joined`(_ seed: UInt64) {
    var random = TestRandom(seed: seed)
    var extents = PageExtents(pages: 100)
    var owners = [Int?](repeating: nil, count: 100)
    var held: [(start: Int, count: Int)] = []
    for step in 0..<400 {
      if Bool.random(using: &random) {
        let count = Int.random(in: 1...20, using: &random)
        let start = extents.allocate(count)
        let fits = (0...(100 - count)).contains { start in
          owners[start..<start + count].allSatisfy { $0 == nil }
        }
        #expect((start != nil) == fits)
        guard let start else { continue }
        for page in start..<start + count {
          #expect(owners[page] == nil)
          owners[page] = step
        }
        held.append((start, count))
      } else if let allocation = held.indices.randomElement(using: &random) {
        let (start, count) = held.remove(at: allocation)
        for page in start..<start + count { owners[page] = nil }
        extents.release(start, count)
      }
      #expect(extents.free.reduce(0) { $0 + $1.count } == owners.filter { $0 == nil }.count)
      for (one, next) in zip(extents.free, extents.free.dropFirst()) {
        #expect(one.end < next.start)
      }
    }
  }

  @Test func `Content larger than any room is discarded from the beginning`() {
    let data = PurgeableData(count: .max, worker: worker) { _ in Issue.record("there is no room") }
    #expect(data.isContentDiscarded)
  }
}

import TestSupport
import Testing

@testable import WorkerKit

/// Compares the cache with a simple model.
@Suite(.timeLimit(.minutes(10))) struct CacheModelTests {
  private struct Model {
    /// The entries; the most recently used one is last.
    var entries: [(key: Int, value: Int, cost: Int)] = []
    var countLimit: Int
    var costLimit: Int
    var cost: Int { entries.reduce(0) { $0 + $1.cost } }

    mutating func get(_ key: Int) -> Int? {
      guard let index = entries.firstIndex(where: { $0.key == key }) else { return nil }
      let entry = entries.remove(at: index)
      entries.append(entry)
      return entry.value
    }

    mutating func put(_ key: Int, _ value: Int, _ cost: Int) {
      entries.removeAll { $0.key == key }
      guard costLimit == 0 || cost <= costLimit else { return }
      entries.append((key, value, cost))
      trim()
    }

    mutating func trim() {
      while !entries.isEmpty,
        (countLimit > 0 && entries.count > countLimit) || (costLimit > 0 && cost > costLimit)
      { entries.removeFirst() }
    }
  }

  @Test(arguments: 1...200 as ClosedRange<UInt64>)
  func `A cache behaves as a simple model of it`(_ seed: UInt64) {
    var random = TestRandom(seed: seed)
    let countLimit = Int.random(in: 0...20, using: &random)
    let costLimit = Bool.random(using: &random) ? Int.random(in: 1...200, using: &random) : 0
    let cache = MemoryCache<Int, Int>(
      countLimit: countLimit, costLimit: costLimit, worker: Worker(socketPath: nil))
    var model = Model(countLimit: countLimit, costLimit: costLimit)
    for step in 0..<500 {
      let key = Int.random(in: 0..<40, using: &random)
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<9:
        let cost = Int.random(in: 0...30, using: &random)
        cache.insert(step, for: key, cost: cost)
        model.put(key, step, cost)
      case 9..<17:
        let (cached, expected) = (cache.value(for: key), model.get(key))
        if cached != expected { Issue.record("seed \(seed), step \(step): \(cached as Any)") }
      case 17:
        cache.removeValue(for: key)
        model.entries.removeAll { $0.key == key }
      case 18:
        model.countLimit = Int.random(in: 0...20, using: &random)
        cache.countLimit = model.countLimit
        model.trim()
      default:
        if Int.random(in: 0..<10, using: &random) == 0 {
          cache.shed()
          model.entries = []
        }
      }
      let keys = cache.state.withLock { $0.entries.keys }
      // `#expect` isn't used here: a hundred thousand calls of it take longer than everything else.
      if keys != model.entries.map(\.key).reversed() || cache.statistics.cost != model.cost {
        Issue.record("seed \(seed), step \(step): \(keys), \(cache.statistics.cost)")
        return
      }
    }
  }

  @Test func `Threads that use one cache at the same time leave it consistent`() async throws {
    let worker = Worker(socketPath: nil)
    let cache = MemoryCache<Int, [Int]>(countLimit: 50, costLimit: 2000, worker: worker)
    let wrong = Log<Int>()
    async let warnings: Void = {
      for _ in 0..<50 {
        await worker.simulateMemoryWarning()
        await Task.yield()
      }
    }()
    try await onThreads(4) { thread in
      var random = TestRandom(seed: UInt64(thread))
      for _ in 0..<20_000 {
        let key = Int.random(in: 0..<200, using: &random)
        let value = cache.value(for: key, cost: { _ in key }, orMake: { [key, key + 1] })
        if value != [key, key + 1] { wrong.append(key) }
        if key % 50 == 0 { cache.removeValue(for: key) }
      }
    }
    await warnings
    #expect(wrong.all == [])
    let keys = cache.state.withLock { $0.entries.keys }
    #expect(Set(keys).count == keys.count)
    #expect(cache.count == keys.count)
    #expect(cache.statistics.cost == keys.reduce(0, +))
    #expect(cache.count <= 50 && cache.statistics.cost <= 2000)
    #expect(cache.statistics.hits + cache.statistics.misses == 80_000)
  }
}

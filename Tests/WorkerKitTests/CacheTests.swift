import Testing

@testable import WorkerKit

@Suite(.timeLimit(.minutes(10))) struct CacheTests {
  private let worker = Worker(socketPath: nil)

  private func cache(count: Int = 0, cost: Int = 0) -> MemoryCache<Int, String> {
    MemoryCache(countLimit: count, costLimit: cost, worker: worker)
  }

  @Test func `A full cache evicts the value that has been unused for the longest time`() {
    let cache = cache(count: 3)
    for key in 1...3 { cache[key] = "\(key)" }
    #expect(cache[1] == "1")
    cache[4] = "4"
    #expect(cache[2] == nil)
    #expect([cache[1], cache[3], cache[4]] == ["1", "3", "4"])
    #expect(cache.statistics.evictions == 1)
    #expect(cache.statistics.hits == 4)
    #expect(cache.statistics.misses == 1)
    #expect(cache.statistics.hitRate == 0.8)
    cache.countLimit = 1
    #expect(cache.count == 1)
    #expect(cache[4] == "4")
  }

  @Test func `The cost of a cache's values stays within its limit`() {
    let cache = cache(cost: 100)
    cache.insert("a", for: 1, cost: 60)
    cache.insert("b", for: 2, cost: 40)
    #expect(cache.count == 2)
    cache.insert("c", for: 1, cost: 61)
    #expect(cache[2] == nil)
    #expect(cache[1] == "c")
    // A value that can't be kept also removes the former one, which is out of date.
    cache.insert("d", for: 1, cost: 101)
    #expect(cache[1] == nil)
    #expect(cache.statistics.cost == 0)
    cache.insert("e", for: 3, cost: -5)
    #expect(cache.statistics.cost == 0)
    cache.insert("f", for: 4, cost: .max)
    #expect(cache[4] == nil)
    cache.costLimit = 0
    cache.insert("f", for: 4, cost: .max)
    #expect(cache[4] == "f")
  }

  @Test func `A cache makes a missing value once, and makes it again after a memory warning`() async
  {
    let cache = cache()
    #expect(cache.value(for: 1, orMake: { "a" }) == "a")
    #expect(cache.value(for: 1, orMake: { "b" }) == "a")
    #expect(await cache.value(for: 2, cost: \.count, orMake: { await later("later") }) == "later")
    #expect(cache.statistics.cost == 5)
    struct Failure: Error {}
    #expect(throws: Failure.self) { try cache.value(for: 3) { throw Failure() } }
    #expect(cache[3] == nil)
    // A value that was put in meanwhile stays.
    let value = cache.value(for: 4) {
      cache[4] = "theirs"
      return "mine"
    }
    #expect(value == "theirs")
    await worker.simulateMemoryWarning()
    #expect(cache.value(for: 1, orMake: { "c" }) == "c")
  }

  private func later(_ text: String) async -> String {
    await Task.yield()
    return text
  }

  @Test func `A warning and the background empty a cache, unless its options keep the values`()
    async
  {
    let all = cache()
    let keeping = cache()
    keeping.options.emptiesInBackground = false
    for cache in [all, keeping] { cache[1] = "1" }
    await worker.simulateEnteringBackground()
    #expect(all.count == 0)
    #expect(keeping.count == 1)
    #expect(all.statistics.shed == 1)
    all[1] = "1"
    keeping.options.emptiesOnWarning = false
    await worker.simulateMemoryWarning()
    #expect(all.count == 0)
    #expect(keeping.count == 1)
    keeping.shed()
    #expect(keeping.count == 0)
  }

  @Test func `A cache's limits follow the reported pressure level`() async throws {
    let daemon = try KitDaemon()
    let worker = Worker(socketPath: daemon.path)
    let cache = MemoryCache<Int, Int>(countLimit: 100, costLimit: 1000, worker: worker)
    let stubborn = MemoryCache<Int, Int>(countLimit: 100, worker: worker)
    stubborn.options.followsPressure = false
    func fill() {
      for key in 0..<100 {
        cache.insert(key, for: key, cost: 10)
        stubborn.insert(key, for: key)
      }
    }
    worker.connect()
    let peer = try await daemon.peer(pressure: "warning")
    for (level, count) in [("warning", 75), ("urgent", 50), ("critical", 25), ("normal", 100)] {
      peer.send(.pressure(level: level))
      // The answer comes after the change.
      peer.request(1, .willSuspend)
      _ = try await daemon.message()
      if level != "warning" && level != "normal" { #expect(cache.count == count) }
      fill()
      #expect(cache.count == count)
      #expect(cache.statistics.cost == count * 10)
      #expect(stubborn.count == 100)
    }
    peer.send(.pressure(level: "critical"))
    peer.request(2, .willSuspend)
    _ = try await daemon.message()
    #expect(cache.count == 25)
    #expect(
      MemoryCache<Int, Int>(countLimit: 2, worker: worker).state.withLock { $0.pressure }
        == .critical)
  }

  @Test func `A cache discards discardable content unless it is in use`() async {
    let cache = MemoryCache<Int, DiscardableValue<String>>(countLimit: 2, worker: worker)
    let used = DiscardableValue("used")
    let free = DiscardableValue("free")
    free.endContentAccess()
    cache[1] = used
    cache[2] = free
    let more = DiscardableValue("more")
    cache[3] = more
    // The oldest value is in use, so the next one was removed.
    #expect(cache[1] === used)
    #expect(free.isContentDiscarded)
    #expect(cache[2] == nil)
    await worker.simulateMemoryWarning()
    #expect(cache.count == 2)
    used.endContentAccess()
    await worker.simulateMemoryWarning()
    #expect(cache.count == 1)
    #expect(used.isContentDiscarded)
    #expect(used.withContent { $0 } == nil)
    // The content was discarded outside of the cache, which doesn't find it any more.
    more.endContentAccess()
    #expect(more.withContent { $0 } == "more")
    more.discardContentIfPossible()
    #expect(cache.count == 1)
    #expect(cache[3] == nil)
    #expect(cache.count == 0)
  }

  @Test func `A value may use its cache while it is deinitialized`() {
    final class Chain: Sendable {
      let cache: MemoryCache<Int, Chain>
      let key: Int
      init(_ cache: MemoryCache<Int, Chain>, _ key: Int) { (self.cache, self.key) = (cache, key) }
      deinit { cache.removeValue(for: key - 1) }
    }
    let cache = MemoryCache<Int, Chain>(countLimit: 10, worker: worker)
    for key in 0..<100 { cache[key] = Chain(cache, key) }
    cache[99] = Chain(cache, 99)
    cache.countLimit = 5
    cache.shed()
    #expect(cache.count == 0)
  }

  @Test func `A cache that has been freed receives no warnings`() async {
    weak var observer: MemoryCache<Int, String>?
    do {
      let cache = cache()
      observer = cache
    }
    #expect(observer == nil)
    for _ in 0..<1000 { _ = cache() }
    await worker.simulateMemoryWarning()
  }

  @Test func `A value in discarded content may use the cache while it is deinitialized`() {
    final class Leaf: Sendable {
      let ended: @Sendable () -> Void
      init(_ ended: @escaping @Sendable () -> Void) { self.ended = ended }
      deinit { ended() }
    }
    let cache = MemoryCache<Int, DiscardableValue<Leaf>>(countLimit: 2, worker: worker)
    let gone = Log<Int>()
    for key in 0..<4 {
      let leaf = Leaf { [weak cache] in gone.append(cache?.count ?? -1) }
      let value = DiscardableValue(leaf)
      value.endContentAccess()
      cache[key] = value
    }
    #expect(gone.all == [2, 2])
    cache.shed()
    #expect(gone.all == [2, 2, 0, 0])
  }
}

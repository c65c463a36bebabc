import Foundation
import Synchronization
import WorkerKit

/// A value as NSCache wants it: an object.
final class Item: Sendable {
  let number: Int
  init(_ number: Int) { self.number = number }
}

protocol Contestant: Sendable {
  static var name: String { get }
  /// - Parameter limit: values at most; 0: none.
  init(limit: Int)
  func get(_ key: Int) -> Item?
  func put(_ key: Int, _ item: Item)
}

struct Ours: Contestant {
  static let name = "MemoryCache"
  let cache: MemoryCache<Int, Item>
  init(limit: Int) { cache = MemoryCache(countLimit: limit, worker: Worker(socketPath: nil)) }
  func get(_ key: Int) -> Item? { cache.value(for: key) }
  func put(_ key: Int, _ item: Item) { cache.insert(item, for: key) }
}

/// The usual substitute for a cache. It has no limit and no order.
final class LockedDictionary: Contestant {
  static let name = "dictionary with a Mutex"
  private let items = Mutex<[Int: Item]>([:])
  init(limit: Int) {}
  func get(_ key: Int) -> Item? { items.withLock { $0[key] } }
  func put(_ key: Int, _ item: Item) { items.withLock { $0[key] = item } }
}

/// Keys must be objects; these exist already, as in the best case.
final class Foundations: Contestant, @unchecked Sendable {
  // Unchecked: NSCache is thread-safe, and says so; keys are never changed.
  static let name = "NSCache"
  private let cache = NSCache<NSNumber, Item>()
  private let keys = (0..<CacheBenchmark.keys * 2).map { NSNumber(value: $0) }
  init(limit: Int) { cache.countLimit = limit }
  func get(_ key: Int) -> Item? { cache.object(forKey: keys[key]) }
  func put(_ key: Int, _ item: Item) { cache.setObject(item, forKey: keys[key]) }
}

enum CacheBenchmark {
  static let keys = 8192
  private static let operations = 200_000

  static func run(rounds: Int, into table: inout Table) {
    let items = (0..<keys * 2).map { Item($0) }
    for _ in 0..<rounds {
      for threads in [1, 2] {
        measure(Ours.self, items, threads, &table)
        measure(LockedDictionary.self, items, threads, &table)
        measure(Foundations.self, items, threads, &table)
      }
    }
  }

  private static func measure<Cache: Contestant>(
    _: Cache.Type, _ items: [Item], _ threads: Int, _ table: inout Table
  ) {
    let cache = Cache(limit: 0)
    for key in 0..<keys { cache.put(key, items[key]) }
    let on = "\(threads) thread\(threads == 1 ? "" : "s"), \(Cache.name)"
    let get = perOperation(threads: threads, operations) { thread in
      var places = Places(thread, count: keys)
      var sum = 0
      for _ in 0..<operations { sum &+= cache.get(places.next())?.number ?? 0 }
      precondition(sum != 1)
    }
    table.add("get, \(on)", get, "ns")
    let put = perOperation(threads: threads, operations) { thread in
      var places = Places(thread, count: keys)
      for _ in 0..<operations {
        let key = places.next()
        cache.put(key, items[key])
      }
    }
    table.add("put over an old value, \(on)", put, "ns")
    guard threads == 1, Cache.self != LockedDictionary.self else { return }
    measureFull(Cache.self, items, &table)
  }

  /// Every second put is of a value that isn't there, and makes another one go.
  private static func measureFull<Cache: Contestant>(
    _: Cache.Type, _ items: [Item], _ table: inout Table
  ) {
    let cache = Cache(limit: keys)
    for key in 0..<keys { cache.put(key, items[key]) }
    // NSCache takes some microseconds for each.
    let count = operations / 10
    let put = perOperation(threads: 1, count) { thread in
      var places = Places(thread, count: keys * 2)
      for _ in 0..<count {
        let key = places.next()
        cache.put(key, items[key])
      }
    }
    table.add("put into a full one, 1 thread, \(Cache.name)", put, "ns")
    let allocations = Allocations.each(count) {
      var places = Places(7, count: keys * 2)
      for _ in 0..<count {
        let key = places.next()
        if cache.get(key) == nil { cache.put(key, items[key]) }
      }
    }
    if let allocations {
      table.add("allocations for a get, and a put into a full one, \(Cache.name)", allocations, "")
    }
  }
}

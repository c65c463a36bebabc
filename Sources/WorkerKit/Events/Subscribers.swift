import Synchronization

/// What WorkerKit's own parts do about an event: at once, and without your code in between.
protocol Shedder: AnyObject, Sendable {
  func shed(for event: WorkerEvent)
}

/// Objects that subscribe to events, held weakly.
///
/// A released closure may hold the last reference to an object, whose deinitializer may subscribe or cancel: so
/// nothing is released while the lock is held.
final class Subscribers: Sendable {
  struct Entry: Sendable {
    let id: UInt64
    /// False: its object was freed.
    let notify: @Sendable (WorkerEvent) async -> Bool
  }
  private struct WeakShedder: Sendable {
    weak let shedder: (any Shedder)?
  }
  private struct State {
    var entries: [Entry] = []
    var nextID: UInt64 = 0
    var shedders: [WeakShedder] = []
    /// With this many shedders, those that were freed are searched for.
    var roomForShedders = 64

    /// The shedders that still exist. The caller releases them; the others are removed.
    mutating func takeStock() -> [any Shedder] {
      let present = shedders.compactMap(\.shedder)
      shedders = present.map { WeakShedder(shedder: $0) }
      return present
    }
  }

  private let state = Mutex(State())

  func add(_ notify: @escaping @Sendable (WorkerEvent) async -> Bool) -> UInt64 {
    state.withLock { state in
      state.nextID += 1
      state.entries.append(Entry(id: state.nextID, notify: notify))
      return state.nextID
    }
  }

  func remove(_ id: UInt64) {
    let removed = state.withLock { state -> Entry? in
      state.entries.firstIndex { $0.id == id }.map { state.entries.remove(at: $0) }
    }
    withExtendedLifetime(removed) {}
  }

  func add(_ shedder: any Shedder) {
    let others = state.withLock { state -> [any Shedder] in
      var others: [any Shedder] = []
      if state.shedders.count >= state.roomForShedders {
        others = state.takeStock()
        state.roomForShedders = max(64, state.shedders.count * 2)
      }
      state.shedders.append(WeakShedder(shedder: shedder))
      return others
    }
    withExtendedLifetime(others) {}
  }

  func shed(for event: WorkerEvent) {
    let shedders = state.withLock { $0.takeStock() }
    for shedder in shedders { shedder.shed(for: event) }
  }

  func deliver(_ event: WorkerEvent) async {
    for entry in state.withLock({ $0.entries }) where await !entry.notify(event) {
      remove(entry.id)
    }
  }
}

/// Ends what `Worker.onMemoryWarning(of:_:)` and `Worker.onEnterBackground(of:_:)` began. You need it only if
/// the object lives on: a freed object isn't notified any more.
public struct Subscription: Sendable {
  let id: UInt64
  weak let subscribers: Subscribers?

  /// From now on no event is delivered. A delivery that is under way may continue.
  public func cancel() { subscribers?.remove(id) }
}

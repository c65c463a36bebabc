import Synchronization

/// A part of WorkerKit that frees memory on an event, at once and without running the program's
/// code first.
protocol Shedder: AnyObject, Sendable {
  func shed(for event: WorkerEvent)
}

/// Objects that subscribe to events. They are referenced weakly.
///
/// A released closure may have the last reference to an object, and that object's deinitializer may
/// subscribe or cancel. Therefore nothing is released while the lock is held.
final class Subscribers: Sendable {
  struct Entry: Sendable {
    let id: UInt64
    /// Calls the subscriber. The result is false if its object was freed.
    let notify: @Sendable (WorkerEvent) async -> Bool
  }
  private struct WeakShedder: Sendable {
    weak let shedder: (any Shedder)?
  }
  private struct State {
    var entries: [Entry] = []
    var nextID: UInt64 = 0
    var shedders: [WeakShedder] = []
    /// At this count, the next addition removes the shedders that were freed.
    var cleanupCount = 64

    /// Removes the shedders that were freed, and returns the others. The caller releases them
    /// outside of the lock.
    mutating func removeFreedShedders() -> [any Shedder] {
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
      if state.shedders.count >= state.cleanupCount {
        others = state.removeFreedShedders()
        state.cleanupCount = max(64, state.shedders.count * 2)
      }
      state.shedders.append(WeakShedder(shedder: shedder))
      return others
    }
    withExtendedLifetime(others) {}
  }

  func shed(for event: WorkerEvent) {
    let shedders = state.withLock { $0.removeFreedShedders() }
    for shedder in shedders { shedder.shed(for: event) }
  }

  func deliver(_ event: WorkerEvent) async {
    for entry in state.withLock({ $0.entries }) where await !entry.notify(event) {
      remove(entry.id)
    }
  }
}

/// A subscription made by `Worker.onMemoryWarning(of:_:)` or `Worker.onEnterBackground(of:_:)`.
///
/// You need it only to end the calls while the object exists: a freed object isn't called. Dropping
/// the value doesn't cancel the subscription.
public struct Subscription: Sendable {
  let id: UInt64
  weak let subscribers: Subscribers?

  /// Ends the subscription: later events aren't delivered. A call that is already running
  /// continues.
  public func cancel() { subscribers?.remove(id) }
}

import Synchronization

/// What WorkerKit's own parts do about an event: at once, and without anybody's code in between.
protocol Shedder: AnyObject, Sendable {
  func shed(for event: WorkerEvent)
}

/// Objects that want to hear of events, held weakly.
final class Subscribers: Sendable {
  struct Entry: Sendable {
    let id: UInt64
    /// False: its object is gone.
    let tell: @Sendable (WorkerEvent) async -> Bool
  }
  private struct WeakShedder: Sendable {
    weak let shedder: (any Shedder)?
  }
  private struct State {
    var entries: [Entry] = []
    var nextID: UInt64 = 0
    var shedders: [WeakShedder] = []
    /// How many shedders there may be before those that are gone are looked for.
    var roomForShedders = 64
  }

  private let state = Mutex(State())

  func add(_ tell: @escaping @Sendable (WorkerEvent) async -> Bool) -> UInt64 {
    state.withLock { state in
      state.nextID += 1
      state.entries.append(Entry(id: state.nextID, tell: tell))
      return state.nextID
    }
  }

  func remove(_ id: UInt64) { state.withLock { $0.entries.removeAll { $0.id == id } } }

  func add(_ shedder: any Shedder) {
    state.withLock { state in
      if state.shedders.count >= state.roomForShedders {
        state.shedders.removeAll { $0.shedder == nil }
        state.roomForShedders = max(64, state.shedders.count * 2)
      }
      state.shedders.append(WeakShedder(shedder: shedder))
    }
  }

  func tell(_ event: WorkerEvent) async {
    for shedder in shedders() { shedder.shed(for: event) }
    for entry in state.withLock({ $0.entries }) where await !entry.tell(event) {
      remove(entry.id)
    }
  }

  private func shedders() -> [any Shedder] {
    state.withLock { state in
      state.shedders.removeAll { $0.shedder == nil }
      return state.shedders.compactMap(\.shedder)
    }
  }
}

/// Ends what `Worker.onMemoryWarning(of:_:)` and `Worker.onEnterBackground(of:_:)` began. Only needed where
/// the object lives on: one that is gone isn't told any more.
public struct Subscription: Sendable {
  let id: UInt64
  weak let subscribers: Subscribers?

  /// From now on nothing is told. What is being told at the moment may go on.
  public func cancel() { subscribers?.remove(id) }
}

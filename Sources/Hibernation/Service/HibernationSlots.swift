import Linux
import Synchronization

/// Hibernations of different workers are performed one after the other: they compete for the disk and for
/// processors. Each waits on its worker's own thread. A hibernation that a client waits for starts at once,
/// beside the one that is under way.
final class HibernationSlots: Sendable {
  private struct State {
    var isTaken = false
    var waiting: [(name: String, turn: Signal)] = []
    /// Workers that may start although another hibernation is under way.
    var prioritized: Set<String> = []
  }

  private let state = Mutex(State())

  /// Waits for a turn. Pass the result to `release`.
  func acquire(_ name: String) -> Bool {
    let turn: Signal? = state.withLock { state in
      if !state.isTaken {
        state.isTaken = true
        return nil
      }
      let turn = Signal()
      state.waiting.append((name, turn))
      return turn
    }
    guard let turn else { return true }
    turn.wait()
    return state.withLock { state in
      // The hibernation started beside another one.
      state.prioritized.remove(name) == nil
    }
  }

  /// - Parameter isOwner: the result of `acquire`.
  func release(_ isOwner: Bool) {
    guard isOwner else { return }
    let next: Signal? = state.withLock { state in
      guard !state.waiting.isEmpty else {
        state.isTaken = false
        return nil
      }
      return state.waiting.removeFirst().turn
    }
    next?.raise()
  }

  /// A client waits for that worker.
  func prioritize(_ name: String) {
    let turn: Signal? = state.withLock { state in
      guard let place = state.waiting.firstIndex(where: { $0.name == name }) else { return nil }
      state.prioritized.insert(name)
      return state.waiting.remove(at: place).turn
    }
    turn?.raise()
  }
}

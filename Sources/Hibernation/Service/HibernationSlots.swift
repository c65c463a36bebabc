import Linux
import Synchronization

/// Lets hibernations of different workers run one after the other: they compete for the disk and
/// for processors. Each waits on its worker's own thread. A hibernation that a client waits for
/// starts at once, beside the one that is under way. A hibernation of a worker that another program
/// has frozen gives its turn to the next.
final class HibernationSlots: Sendable {
  private struct State {
    var isBusy = false
    var waiting: [(name: String, turn: OneTimeEvent)] = []
    /// Workers that may start although another hibernation is under way.
    var prioritized: Set<String> = []
  }

  private let state = Mutex(State())

  /// One hibernation's turn. It lasts until the first call of `end`.
  final class Turn: Sendable {
    private let slots: HibernationSlots
    private let isOwner: Mutex<Bool>

    fileprivate init(_ slots: HibernationSlots, isOwner: Bool) {
      self.slots = slots
      self.isOwner = Mutex(isOwner)
    }

    /// Ends the turn: the next hibernation may begin.
    func end() {
      let isOwner = isOwner.withLock { isOwner in
        defer { isOwner = false }
        return isOwner
      }
      if isOwner { slots.release() }
    }
  }

  /// Waits for a turn.
  func acquire(_ name: String) -> Turn {
    let turn: OneTimeEvent? = state.withLock { state in
      if !state.isBusy {
        state.isBusy = true
        return nil
      }
      let turn = OneTimeEvent()
      state.waiting.append((name, turn))
      return turn
    }
    guard let turn else { return Turn(self, isOwner: true) }
    turn.wait()
    // If it isn't the owner, the hibernation started beside another one.
    let isOwner = state.withLock { $0.prioritized.remove(name) == nil }
    return Turn(self, isOwner: isOwner)
  }

  private func release() {
    let next: OneTimeEvent? = state.withLock { state in
      guard !state.waiting.isEmpty else {
        state.isBusy = false
        return nil
      }
      return state.waiting.removeFirst().turn
    }
    next?.raise()
  }

  /// Starts the hibernation of a worker that a client waits for.
  func prioritize(_ name: String) {
    let turn: OneTimeEvent? = state.withLock { state in
      guard let index = state.waiting.firstIndex(where: { $0.name == name }) else { return nil }
      state.prioritized.insert(name)
      return state.waiting.remove(at: index).turn
    }
    turn?.raise()
  }
}

import Lifecycle
import Policy

/// The changes of state that only one of two histories has.
public struct Divergence: Sendable {
  public struct Change: Hashable, Sendable {
    public var transition: Transition
    /// `true`: only the journal has the change; `false`: only the other policy's history has it.
    public var isRecorded: Bool
  }

  /// The first changes in their order, at most `maxKept`.
  public private(set) var changes: [Change] = []
  /// The number of all changes.
  public private(set) var count = 0
  public static let maxKept = 20

  /// Changes that the other history hasn't shown yet.
  private var open: [Change] = []
  /// The last stable state of each worker, in both histories.
  private var stableStates: [[WorkerID: WorkerState]] = [[:], [:]]

  /// The difference in time within which two changes count as the same. Estimated outcomes come a
  /// little earlier or later than real ones.
  static let tolerance = Duration.seconds(2)

  mutating func add(_ directive: Directive, isRecorded: Bool) {
    guard case .transition(var new) = directive, new.to.isStable || new.to == .terminated else {
      return
    }
    // The change is from one stable state to the next, without the states between them.
    let side = isRecorded ? 0 : 1
    new.from = stableStates[side].updateValue(new.to, forKey: new.worker) ?? new.from
    if new.from == new.to { return }
    expire(before: new.at)
    let match = open.firstIndex {
      $0.isRecorded != isRecorded && $0.transition.worker == new.worker
        && $0.transition.to == new.to
    }
    if let match {
      open.remove(at: match)
    } else {
      open.append(Change(transition: new, isRecorded: isRecorded))
    }
  }

  private mutating func expire(before now: Instant) {
    while let first = open.first, first.transition.at + Self.tolerance < now {
      open.removeFirst()
      count += 1
      if changes.count < Self.maxKept { changes.append(first) }
    }
  }

  mutating func finish() {
    expire(before: Instant(nanoseconds: .max))
  }

  /// Clears the states of both histories, which have started again from the same engine.
  mutating func forget() {
    finish()
    stableStates = [[:], [:]]
  }
}

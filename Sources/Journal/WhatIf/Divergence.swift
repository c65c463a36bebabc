import Lifecycle
import Policy

/// Where two histories differ: changes of state that only one of them has.
public struct Divergence: Sendable {
  public struct Change: Hashable, Sendable {
    public var transition: Transition
    /// `true`: only the journal has it; `false`: only the other policy.
    public var isRecorded: Bool
  }

  /// The first ones, in their order.
  public private(set) var changes: [Change] = []
  public private(set) var count = 0
  public static let maxKept = 20

  /// Changes that the other side hasn't shown yet.
  private var open: [Change] = []
  /// The last state of rest of each worker, on both sides.
  private var rests: [[WorkerID: WorkerState]] = [[:], [:]]

  /// Estimated outcomes come a little earlier or later than real ones.
  static let tolerance = Duration.seconds(2)

  mutating func add(recorded directive: Directive) { add(directive, isRecorded: true) }
  mutating func add(other directive: Directive) { add(directive, isRecorded: false) }

  private mutating func add(_ directive: Directive, isRecorded: Bool) {
    guard case .transition(var new) = directive, new.to.isRest else { return }
    // From rest to rest, without the states between them.
    let side = isRecorded ? 0 : 1
    new.from = rests[side].updateValue(new.to, forKey: new.worker) ?? new.from
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

  /// Both worlds have started over, and are the same.
  mutating func forget() {
    finish()
    rests = [[:], [:]]
  }
}

extension WorkerState {
  /// A state in which a worker stays: neither a transition nor launching.
  fileprivate var isRest: Bool {
    switch self {
    case .foreground, .background, .suspended, .hibernated, .terminated: true
    case .launching, .suspending, .hibernating, .resuming, .terminating: false
    }
  }
}

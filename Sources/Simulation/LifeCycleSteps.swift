import Lifecycle
import Policy

extension WorkerState {
  /// The victims of the rung that terminates a worker in this state.
  var victims: Ladder.Rung.Victims? {
    switch self {
    case .suspended, .hibernated: .suspended
    case .background: .background
    case .foreground, .launching: .foreground
    default: nil
    }
  }

  /// The states to which the life cycle has a transition, apart from `terminated`.
  private var successors: [WorkerState] {
    switch self {
    case .terminated: [.launching]
    case .launching: [.launching, .foreground, .background, .terminating]
    case .foreground: [.background, .terminating]
    case .background: [.foreground, .suspending, .terminating]
    case .suspending: [.suspended, .background, .terminating]
    case .suspended: [.hibernating, .resuming, .terminating]
    case .hibernating: [.hibernated, .suspended, .background, .terminating]
    case .hibernated: [.resuming, .terminating]
    case .resuming: [.foreground, .background, .suspended, .hibernated, .terminating]
    case .terminating: []
    }
  }

  func mayBecome(_ next: WorkerState) -> Bool {
    next == .terminated ? self != .terminated : successors.contains(next)
  }
}

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

  /// Returns true if the life cycle has a transition to the next state.
  func mayBecome(_ next: WorkerState) -> Bool {
    if next == .terminated { return self != .terminated }
    switch self {
    case .terminated: return next == .launching
    case .launching: return [.launching, .foreground, .background, .terminating].contains(next)
    case .foreground: return [.background, .terminating].contains(next)
    case .background: return [.foreground, .suspending, .terminating].contains(next)
    case .suspending: return [.suspended, .background, .terminating].contains(next)
    case .suspended: return [.hibernating, .resuming, .terminating].contains(next)
    case .hibernating:
      return [.hibernated, .suspended, .background, .terminating].contains(next)
    case .hibernated: return [.resuming, .terminating].contains(next)
    case .resuming:
      return [.foreground, .background, .suspended, .hibernated, .terminating].contains(next)
    case .terminating: return false
    }
  }
}

import Lifecycle
import Policy

extension WorkerState {
  /// The rung that terminates it.
  var victims: Ladder.Rung.Victims? {
    switch self {
    case .suspended, .hibernated: .suspended
    case .background: .background
    case .foreground, .launching: .foreground
    default: nil
    }
  }

  /// The transitions of the life cycle.
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

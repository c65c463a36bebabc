import Policy

// Who is terminated first: 0–100, lowest first. Below a foreground worker there is room for
// importance, but never enough to pass into the next state's band, save that an important
// background worker (30–59) stays under a hibernated one (75–99): that costs nearly nothing to
// keep.

extension WorkerState {
  /// Of an unimportant worker. The transitions have none of their own.
  var baseBand: Int {
    switch self {
    case .suspended: 0
    case .background: 30
    case .hibernated: 75
    case .launching: 90
    case .foreground: 100
    case .suspending, .hibernating, .resuming, .terminating, .terminated: 0
    }
  }

  /// What importance 100 adds.
  var bandRoom: Int {
    switch self {
    case .suspended, .background: 29
    case .hibernated: 24
    default: 0
    }
  }
}

extension WorkerRecord {
  /// A worker between two states counts as in the higher of them.
  var band: Int {
    switch state {
    case .suspending: max(band(in: .background), band(in: .suspended))
    case .hibernating: max(band(in: .suspended), band(in: .hibernated))
    case .resuming: max(band(in: origin), band(in: resumesTo))
    case .terminating: band(in: origin)
    default: band(in: state)
    }
  }

  private var resumesTo: WorkerState {
    goal?.destination == .foreground ? .foreground : .background
  }

  private func band(in state: WorkerState) -> Int {
    state.baseBand + min(max(profile.importance, 0), 100) * state.bandRoom / 100
  }
}

import Lifecycle

/// An event's name in the journal. A name never changes once a journal may contain it.
enum EventKind: String, CaseIterable {
  case added, profileChanged, removed, released, adopted, request
  case launched, launchFailed, ready, shedAnswered, shedFinished
  case suspended, suspendFailed, hibernated, hibernateFailed, resumed, resumeFailed, exited
  case footprint, taskBegan, taskEnded, activity, wakeNeeded, memory, stalled, deadline
  case hold, fileLocks, extendTimeout, purgeableOffered, purged, purgeFailed, disk
  case unhealthy, moved, pressureSet, channelsChanged, found, worked, timerDue
  case watchdogInterval, watchdogSeen, watchdogTriggered, machineSlept
  case swapped, trimmed, trimFailed, filled, fillFailed, trimLost

  /// The switch has no default on purpose: a new event doesn't compile until it has a name here.
  init(of event: Event) {
    self =
      switch event {
      case .added: .added
      case .profileChanged: .profileChanged
      case .removed: .removed
      case .released: .released
      case .adopted: .adopted
      case .request: .request
      case .launched: .launched
      case .launchFailed: .launchFailed
      case .ready: .ready
      case .shedAnswered: .shedAnswered
      case .shedFinished: .shedFinished
      case .suspended: .suspended
      case .suspendFailed: .suspendFailed
      case .hibernated: .hibernated
      case .hibernateFailed: .hibernateFailed
      case .resumed: .resumed
      case .resumeFailed: .resumeFailed
      case .exited: .exited
      case .footprint: .footprint
      case .taskBegan: .taskBegan
      case .taskEnded: .taskEnded
      case .activity: .activity
      case .wakeNeeded: .wakeNeeded
      case .memory: .memory
      case .stalled: .stalled
      case .pressureSet: .pressureSet
      case .deadline: .deadline
      case .hold: .hold
      case .fileLocks: .fileLocks
      case .extendTimeout: .extendTimeout
      case .purgeableOffered: .purgeableOffered
      case .purged: .purged
      case .purgeFailed: .purgeFailed
      case .disk: .disk
      case .unhealthy: .unhealthy
      case .moved: .moved
      case .channelsChanged: .channelsChanged
      case .found: .found
      case .worked: .worked
      case .timerDue: .timerDue
      case .watchdogInterval: .watchdogInterval
      case .watchdogSeen: .watchdogSeen
      case .watchdogTriggered: .watchdogTriggered
      case .machineSlept: .machineSlept
      case .swapped: .swapped
      case .trimmed: .trimmed
      case .trimFailed: .trimFailed
      case .trimLost: .trimLost
      case .filled: .filled
      case .fillFailed: .fillFailed
      }
  }
}

/// An event's name in the journal. A name never changes once a journal may contain it.
enum EventKind: String, CaseIterable {
  case added, profileChanged, removed, released, adopted, request
  case launched, launchFailed, ready, shedAnswered, shedFinished
  case suspended, suspendFailed, hibernated, hibernateFailed, resumed, resumeFailed, exited
  case footprint, taskBegan, taskEnded, activity, wakeNeeded, memory, stalled, deadline
  case hold, fileLocks, extendTimeout, purgeableOffered, purged, purgeFailed, disk
  case unhealthy, moved, pressureSet, channelsChanged, found, worked, timerDue
  case watchdogInterval, watchdogSeen, watchdogTriggered, machineSlept
  case swapped, trimmed, trimFailed, filled, fillFailed, trimLost, staysAwake
}

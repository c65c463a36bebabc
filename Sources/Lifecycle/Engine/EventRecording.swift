import Policy

// An event changes facts here. `advance` decides what follows from them.

extension Engine {
  mutating func record(_ event: Event) {
    switch event {
    case .added(let worker, let profile): add(worker, profile)
    case .request(let request): accept(request)
    case .memory(let reading): recordReading(reading)
    case .stalled(let level): recordStall(level)
    case .pressureSet(let level, let time): recordPressureSet(level, for: time)
    case .disk(let reading): recordDisk(reading)
    case .machineSlept(let time): recordMachineSlept(time)
    case .deadline: break
    case .adopted(let worker, let profile, let state): adopt(worker, profile, in: state)
    default:
      // Every other event is about one worker. It is ignored if the worker has been forgotten.
      guard let worker = event.subject, let index = index(of: worker) else { return }
      record(event, about: index)
    }
  }

  private mutating func record(_ event: Event, about index: Int) {
    switch event {
    case .profileChanged(_, let profile):
      workers[index].profile = profile
      workers[index].updateFootprintWatch(at: now)
    case .channelsChanged(_, let canShed, let canAnswer):
      workers[index].profile.canShed = canShed
      workers[index].profile.canAnswer = canAnswer
    case .removed: workers[index].forgetWhenGone = true
    case .released: recordReleased(index)
    case .moved(_, let state, let reason): recordMoved(index, to: state, reason: reason)
    case .launched: recordLaunched(index)
    case .launchFailed(_, let reason): recordLaunchFailed(index, reason)
    case .ready: recordReady(index)
    case .shedAnswered: recordShedAnswered(index)
    case .shedFinished(_, let before, let after):
      recordShedFinished(index, before: before, after: after)
    case .suspended: recordSuspended(index)
    case .suspendFailed(_, let reason): recordSuspendFailed(index, reason)
    case .staysAwake(_, let reason): recordStaysAwake(index, reason)
    case .hibernated(_, let result): recordHibernated(index, result)
    case .hibernateFailed(_, let reason, let permanent):
      recordHibernateFailed(index, reason, permanent: permanent)
    case .resumed(_, let cost): recordResumed(index, cost)
    case .resumeFailed(_, let reason, let intact): recordResumeFailed(index, reason, intact: intact)
    case .exited(_, let status): recordExited(index, status)
    case .found(_, let condition): recordInspection(index, condition)
    case .footprint(_, let footprint): recordFootprint(index, footprint)
    case .swapped(_, let bytes): recordSwapped(index, bytes)
    case .trimmed(_, let result): recordTrimmed(index, result)
    case .trimFailed(_, let reason, let permanent):
      recordTrimFailed(index, reason, permanent: permanent)
    case .trimLost(_, let reason): recordTrimLost(index, reason)
    case .filled(_, let swapped): recordFilled(index, swapped: swapped)
    case .fillFailed(_, let reason): recordFillFailed(index, reason)
    case .taskBegan(_, let task, let limit): recordTaskBegan(index, name: task, limit: limit)
    case .taskEnded(_, let task): workers[index].run.tasks.removeAll { $0.name == task }
    case .activity: recordActivity(index)
    case .worked: recordWork(index)
    case .hold(_, let holds): recordHold(index, holds)
    case .fileLocks(_, let held): recordFileLocks(index, held)
    case .extendTimeout(_, let time): recordExtension(index, time)
    case .purgeableOffered(_, let bytes): recordOffer(index, bytes)
    case .purged(_, let freed): recordPurged(index, freed)
    case .purgeFailed(_, let reason): recordPurgeFailed(index, reason)
    case .wakeNeeded(_, let reason): recordWakeNeeded(index, reason)
    case .timerDue(_, let reason): recordWakeNeeded(index, reason, isTimer: true)
    case .unhealthy(_, let reason): recordUnhealthy(index, reason)
    case .watchdogInterval(_, let interval): recordWatchdogInterval(index, interval)
    case .watchdogSeen(_, let sign): recordWatchdogSeen(index, sign)
    case .watchdogTriggered: recordWatchdogTriggered(index)
    case .added, .adopted, .request, .memory, .disk, .stalled, .pressureSet, .machineSlept,
      .deadline:
      break
    }
  }

  private mutating func add(_ worker: WorkerID, _ profile: WorkerProfile) {
    if let index = index(of: worker) {
      workers[index].profile = profile
      workers[index].updateFootprintWatch(at: now)
      workers[index].forgetWhenGone = false
    } else {
      workers.add(newRecord(worker, profile))
    }
  }

  /// Accepts only states in which an earlier daemon can have left a worker.
  private mutating func adopt(
    _ worker: WorkerID, _ profile: WorkerProfile, in state: WorkerState
  ) {
    add(worker, profile)
    guard let index = index(of: worker), workers[index].state == .terminated,
      [.foreground, .background, .suspended, .hibernated].contains(state)
    else { return }
    let state = state == .foreground && !hasForegroundRoom(for: index) ? .background : state
    // An earlier daemon has learned it about the same run. That isn't sure for a worker that
    // another program supervises: it may have been started again meanwhile.
    let growth = profile.mayBeTerminated ? workers[index].run.growth : nil
    workers[index].run = Run()
    workers[index].run.growth = growth
    workers[index].run.isSpawned = true
    workers[index].run.launchAskedAt = now
    workers[index].run.suspendedSince = now
    workers[index].run.restingSince = now
    workers[index].run.runningSince = now
    workers[index].lastUsed = now
    move(index, to: state, .adopted)
    emit(.measure(worker))
  }

  mutating func recordFootprint(_ index: Int, _ footprint: ByteCount) {
    guard workers[index].state.isAlive else { return }
    let isFirstAsleep =
      workers[index].state == .suspended && !workers[index].run.isMeasuredAsleep
    workers[index].measured(footprint)
    let (resident, rules) = (workers[index].resident, workers[index].policy.trim)
    workers[index].run.trim?.measured(resident: resident, rules, at: now)
    workers[index].updateFootprintWatch(at: now)
    if isFirstAsleep { recordGrowth(index, footprint) }
  }
}

extension Event {
  /// The worker that the event is about. `nil`: the event is about the machine.
  public var subject: WorkerID? {
    switch self {
    case .added(let worker, _), .profileChanged(let worker, _), .removed(let worker),
      .released(let worker), .adopted(let worker, _, _), .moved(let worker, _, _),
      .launched(let worker), .launchFailed(let worker, _), .ready(let worker),
      .shedAnswered(let worker), .shedFinished(let worker, _, _), .suspended(let worker),
      .suspendFailed(let worker, _), .staysAwake(let worker, _), .hibernated(let worker, _),
      .hibernateFailed(let worker, _, _), .resumed(let worker, _), .resumeFailed(let worker, _, _),
      .exited(let worker, _), .footprint(let worker, _), .taskBegan(let worker, _, _),
      .taskEnded(let worker, _), .activity(let worker), .channelsChanged(let worker, _, _),
      .found(let worker, _), .worked(let worker), .timerDue(let worker, _),
      .wakeNeeded(let worker, _), .unhealthy(let worker, _), .hold(let worker, _),
      .fileLocks(let worker, _), .watchdogInterval(let worker, _), .watchdogSeen(let worker, _),
      .watchdogTriggered(let worker), .extendTimeout(let worker, _),
      .purgeableOffered(let worker, _), .purged(let worker, _), .purgeFailed(let worker, _),
      .swapped(let worker, _), .trimmed(let worker, _), .trimFailed(let worker, _, _),
      .trimLost(let worker, _), .filled(let worker, _), .fillFailed(let worker, _):
      worker
    case .request(let request): request.worker
    case .memory, .disk, .stalled, .pressureSet, .machineSlept, .deadline: nil
    }
  }
}

import Lifecycle
import Policy

extension FieldWriter {
  private mutating func set(_ request: Request) throws {
    set(request.worker)
    set("verb", request.verb.rawValue)
    set("id", Int64(bitPattern: request.id))
    if let asked = request.asked { set("asked", asked) }
    if let occasion = request.occasion { set("occasion", occasion.rawValue) }
    if let lasting = request.lasting { try set("lasting", coded: lasting) }
  }

  private mutating func set(_ status: ExitStatus) {
    switch status {
    case .exited(let code): set("code", Int64(code))
    case .signaled(let signal): set("signal", Int64(signal))
    case .outOfMemory: set("oom", true)
    case .unknown: break
    }
  }

  private mutating func set(_ worker: WorkerID, _ state: WorkerState) {
    set(worker)
    set("state", state.rawValue)
  }

  /// Writes `e`, `w` and the other members of the event.
  mutating func set(_ event: Event, _ profiles: ProfileCodec) throws {
    set("e", EventKind(of: event).rawValue)
    switch event {
    case .added(let worker, let profile), .profileChanged(let worker, let profile):
      set(worker)
      set("profile", try profiles.tree(profile))
    case .adopted(let worker, let profile, let state):
      set(worker, state)
      set("profile", try profiles.tree(profile))
    case .moved(let worker, let state, let reason):
      set(worker, state)
      if let reason { set("why", reason) }
    case .request(let request): try set(request)
    case .removed(let worker), .released(let worker), .launched(let worker), .ready(let worker),
      .shedAnswered(let worker), .suspended(let worker), .activity(let worker), .worked(let worker),
      .watchdogTriggered(let worker):
      set(worker)
    case .launchFailed(let worker, let reason), .suspendFailed(let worker, let reason),
      .purgeFailed(let worker, let reason), .wakeNeeded(let worker, let reason),
      .unhealthy(let worker, let reason), .timerDue(let worker, let reason):
      set(worker)
      set("why", reason)
    case .shedFinished(let worker, let before, let after):
      set(worker)
      set("before", before)
      set("after", after)
    case .hibernated(let worker, let result):
      set(worker)
      set("before", result.footprintBefore)
      set("after", result.footprintAfter)
      set("image", result.imageSize)
      try set("took", coded: result.duration)
    case .hibernateFailed(let worker, let reason, let permanent):
      set(worker)
      set("why", reason)
      set("permanent", permanent)
    case .resumed(let worker, let took):
      set(worker)
      try set("took", coded: took)
    case .resumeFailed(let worker, let reason, let intact):
      set(worker)
      set("why", reason)
      set("intact", intact)
    case .exited(let worker, let status):
      set(worker)
      set(status)
    case .footprint, .purgeableOffered, .purged, .swapped, .filled, .fillFailed, .trimmed,
      .trimFailed, .trimLost:
      try setMemory(event)
    case .taskBegan(let worker, let task, let limit):
      set(worker)
      set("task", task)
      try set("limit", coded: limit)
    case .taskEnded(let worker, let task):
      set(worker)
      set("task", task)
    case .memory(let reading):
      set("total", reading.total)
      set("available", reading.available)
      try set("some", coded: reading.someStall)
      try set("full", coded: reading.fullStall)
      if reading.swapFree > .zero { set("swap", reading.swapFree) }
    case .hold(let worker, let holds):
      set(worker)
      set("holds", holds)
    case .fileLocks(let worker, let held):
      set(worker)
      set("held", Int64(held))
    case .extendTimeout(let worker, let time):
      set(worker)
      try set("by", coded: time)
    case .watchdogInterval(let worker, let interval):
      set(worker)
      try set("every", coded: interval)
    case .watchdogSeen(let worker, let sign):
      set(worker)
      if let sign { set("seen", sign) }
    case .disk(let reading): try set("disk", coded: reading)
    case .stalled(let level): set("level", level.name)
    case .pressureSet(let level, let time):
      set("level", level.name)
      try set("for", coded: time)
    case .channelsChanged(let worker, let canShed, let canAnswer):
      set(worker)
      set("canShed", canShed)
      set("canAnswer", canAnswer)
    case .found(let worker, let condition):
      set(worker)
      try set("found", coded: condition)
    case .machineSlept(let time): try set("for", coded: time)
    case .deadline: break
    }
  }
  /// Writes an event about where a worker's memory is.
  private mutating func setMemory(_ event: Event) throws {
    switch event {
    case .footprint(let worker, let bytes), .purgeableOffered(let worker, let bytes),
      .purged(let worker, let bytes), .swapped(let worker, let bytes),
      .filled(let worker, let bytes):
      set(worker)
      set("bytes", bytes)
    case .trimmed(let worker, let result):
      set(worker)
      try set("trim", coded: result)
    case .trimFailed(let worker, let reason, let permanent):
      set(worker)
      set("why", reason)
      set("permanent", permanent)
    case .fillFailed(let worker, let reason), .trimLost(let worker, let reason):
      set(worker)
      set("why", reason)
    default: break
    }
  }
}

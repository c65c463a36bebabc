import JSONLines
import Lifecycle
import Policy

extension FieldWriter {
  private mutating func set(_ request: Request) throws {
    begin(.request, request.worker)
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

  /// Writes the members `e` and `w`, with which the record of a worker's event begins.
  private mutating func begin(_ kind: EventKind, _ worker: WorkerID) {
    set("e", kind.rawValue)
    set(worker)
  }

  private mutating func set(
    _ kind: EventKind, of worker: WorkerID, because reason: String, flag: String? = nil,
    _ isSet: Bool = false
  ) {
    begin(kind, worker)
    set("why", reason)
    if let flag { set(flag, isSet) }
  }

  private mutating func set(_ kind: EventKind, of worker: WorkerID, _ bytes: ByteCount) {
    begin(kind, worker)
    set("bytes", bytes)
  }

  private mutating func set(
    _ kind: EventKind, of worker: WorkerID, _ name: String, coded value: some Encodable
  ) throws {
    begin(kind, worker)
    try set(name, coded: value)
  }

  /// Writes `e`, `w` and the other members of the event. The switches have no default on purpose: a
  /// new event doesn't compile until it is written.
  mutating func set(_ event: Event, _ profiles: ProfileCodec) throws {
    switch event {
    case .request(let request): try set(request)
    case .removed(let worker): begin(.removed, worker)
    case .released(let worker): begin(.released, worker)
    case .launched(let worker): begin(.launched, worker)
    case .ready(let worker): begin(.ready, worker)
    case .shedAnswered(let worker): begin(.shedAnswered, worker)
    case .suspended(let worker): begin(.suspended, worker)
    case .activity(let worker): begin(.activity, worker)
    case .worked(let worker): begin(.worked, worker)
    case .watchdogTriggered(let worker): begin(.watchdogTriggered, worker)
    case .launchFailed(let worker, let reason): set(.launchFailed, of: worker, because: reason)
    case .suspendFailed(let worker, let reason): set(.suspendFailed, of: worker, because: reason)
    case .staysAwake(let worker, let reason): set(.staysAwake, of: worker, because: reason)
    case .purgeFailed(let worker, let reason): set(.purgeFailed, of: worker, because: reason)
    case .wakeNeeded(let worker, let reason): set(.wakeNeeded, of: worker, because: reason)
    case .unhealthy(let worker, let reason): set(.unhealthy, of: worker, because: reason)
    case .timerDue(let worker, let reason): set(.timerDue, of: worker, because: reason)
    case .fillFailed(let worker, let reason): set(.fillFailed, of: worker, because: reason)
    case .trimLost(let worker, let reason): set(.trimLost, of: worker, because: reason)
    case .hibernateFailed(let worker, let reason, let permanent):
      set(.hibernateFailed, of: worker, because: reason, flag: "permanent", permanent)
    case .trimFailed(let worker, let reason, let permanent):
      set(.trimFailed, of: worker, because: reason, flag: "permanent", permanent)
    case .resumeFailed(let worker, let reason, let intact):
      set(.resumeFailed, of: worker, because: reason, flag: "intact", intact)
    case .footprint(let worker, let bytes): set(.footprint, of: worker, bytes)
    case .purgeableOffered(let worker, let bytes): set(.purgeableOffered, of: worker, bytes)
    case .purged(let worker, let bytes): set(.purged, of: worker, bytes)
    case .swapped(let worker, let bytes): set(.swapped, of: worker, bytes)
    case .filled(let worker, let bytes): set(.filled, of: worker, bytes)
    case .trimmed(let worker, let result): try set(.trimmed, of: worker, "trim", coded: result)
    case .resumed(let worker, let took): try set(.resumed, of: worker, "took", coded: took)
    case .extendTimeout(let worker, let time):
      try set(.extendTimeout, of: worker, "by", coded: time)
    case .watchdogInterval(let worker, let interval):
      try set(.watchdogInterval, of: worker, "every", coded: interval)
    case .found(let worker, let condition): try set(.found, of: worker, "found", coded: condition)
    case .fileLocks(let worker, let held): try set(.fileLocks, of: worker, "held", coded: held)
    case .hold(let worker, let holds): try set(.hold, of: worker, "holds", coded: holds)
    case .taskEnded(let worker, let task): try set(.taskEnded, of: worker, "task", coded: task)
    case .added, .profileChanged, .adopted, .moved, .shedFinished, .hibernated, .exited, .taskBegan,
      .watchdogSeen, .channelsChanged:
      try setMembers(event, profiles)
    case .memory, .disk, .stalled, .pressureSet, .machineSlept, .deadline: try setMachine(event)
    }
  }

  /// Writes an event of a worker that has several members.
  private mutating func setMembers(_ event: Event, _ profiles: ProfileCodec) throws {
    switch event {
    case .added(let worker, let profile):
      begin(.added, worker)
      set("profile", try profiles.tree(profile))
    case .profileChanged(let worker, let profile):
      begin(.profileChanged, worker)
      set("profile", try profiles.tree(profile))
    case .adopted(let worker, let profile, let state):
      begin(.adopted, worker)
      set("state", state.rawValue)
      set("profile", try profiles.tree(profile))
    case .moved(let worker, let state, let reason):
      begin(.moved, worker)
      set("state", state.rawValue)
      if let reason { set("why", reason) }
    case .shedFinished(let worker, let before, let after):
      begin(.shedFinished, worker)
      set("before", before)
      set("after", after)
    case .hibernated(let worker, let result):
      begin(.hibernated, worker)
      set("before", result.footprintBefore)
      set("after", result.footprintAfter)
      set("image", result.imageSize)
      try set("took", coded: result.duration)
    case .exited(let worker, let status):
      begin(.exited, worker)
      set(status)
    case .taskBegan(let worker, let task, let limit):
      begin(.taskBegan, worker)
      set("task", task)
      try set("limit", coded: limit)
    case .watchdogSeen(let worker, let sign):
      begin(.watchdogSeen, worker)
      if let sign { set("seen", sign) }
    case .channelsChanged(let worker, let canShed, let canAnswer):
      begin(.channelsChanged, worker)
      set("canShed", canShed)
      set("canAnswer", canAnswer)
    default: break
    }
  }

  /// Writes an event of the machine.
  private mutating func setMachine(_ event: Event) throws {
    switch event {
    case .memory(let reading):
      set("e", "memory")
      set("total", reading.total)
      set("available", reading.available)
      try set("some", coded: reading.someStall)
      try set("full", coded: reading.fullStall)
      if reading.swapFree > .zero { set("swap", reading.swapFree) }
    case .disk(let reading):
      set("e", "disk")
      try set("disk", coded: reading)
    case .stalled(let level):
      set("e", "stalled")
      set("level", level.name)
    case .pressureSet(let level, let time):
      set("e", "pressureSet")
      set("level", level.name)
      try set("for", coded: time)
    case .machineSlept(let time):
      set("e", "machineSlept")
      try set("for", coded: time)
    default: set("e", "deadline")
    }
  }
}

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

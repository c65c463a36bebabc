import Lifecycle
import Policy

extension FieldReader {
  private func request() throws -> Request {
    Request(
      id: UInt64(bitPattern: try integer("id")),
      verb: try coded("verb", as: Request.Verb.self), worker: try worker(),
      asked: try optional("asked", as: Int64.self).map { Instant(nanoseconds: $0) },
      occasion: try optional("occasion", as: Request.Occasion.self),
      lasting: try optional("lasting", as: Duration.self))
  }

  func event(_ profiles: ProfileCodec) throws -> Event {
    let name = try text("e")
    guard let kind = EventKind(rawValue: name) else {
      throw JournalMismatch("this version doesn't know the event `\(name)`")
    }
    switch kind {
    case .added: return .added(try worker(), try profile(profiles))
    case .profileChanged: return .profileChanged(try worker(), try profile(profiles))
    case .adopted:
      return .adopted(
        try worker(), try profile(profiles), try coded("state", as: WorkerState.self))
    case .channelsChanged:
      return .channelsChanged(
        try worker(), canShed: try boolean("canShed"), canAnswer: try boolean("canAnswer"))
    case .found: return .found(try worker(), try coded("found", as: WorkerCondition.self))
    case .worked: return .worked(try worker())
    case .timerDue: return .timerDue(try worker(), try text("why"))
    case .removed: return .removed(try worker())
    case .released: return .released(try worker())
    case .request: return .request(try request())
    case .launched: return .launched(try worker())
    case .launchFailed: return .launchFailed(try worker(), try text("why"))
    case .ready: return .ready(try worker())
    case .shedAnswered: return .shedAnswered(try worker())
    case .shedFinished:
      return .shedFinished(try worker(), before: try bytes("before"), after: try bytes("after"))
    case .suspended: return .suspended(try worker())
    case .hibernated: return .hibernated(try worker(), try hibernation())
    case .hibernateFailed:
      return .hibernateFailed(try worker(), try text("why"), permanent: try boolean("permanent"))
    case .resumed: return .resumed(try worker(), try coded("took", as: Duration.self))
    case .resumeFailed:
      return .resumeFailed(try worker(), try text("why"), intact: try boolean("intact"))
    case .exited: return .exited(try worker(), try exitStatus())
    case .footprint: return .footprint(try worker(), try bytes("bytes"))
    case .taskBegan:
      return .taskBegan(
        try worker(), task: try text("task"), limit: try optional("limit", as: Duration.self))
    case .taskEnded: return .taskEnded(try worker(), task: try text("task"))
    case .activity: return .activity(try worker())
    case .wakeNeeded: return .wakeNeeded(try worker(), try text("why"))
    case .memory:
      return .memory(
        MemoryReading(
          total: try bytes("total"), available: try bytes("available"),
          someStall: try optional("some", as: Double.self),
          fullStall: try optional("full", as: Double.self),
          swapFree: ByteCount(try optional("swap", as: Int64.self) ?? 0)))
    case .stalled: return .stalled(try level("level"))
    case .pressureSet: return .pressureSet(try level("level"), for: try time())
    case .machineSlept: return .machineSlept(try time())
    case .deadline: return .deadline
    case .hold: return .hold(try worker(), try boolean("holds"))
    case .fileLocks: return .fileLocks(try worker(), held: try coded("held", as: Int.self))
    case .extendTimeout:
      return .extendTimeout(try worker(), try coded("by", as: Duration.self))
    case .unhealthy: return .unhealthy(try worker(), try text("why"))
    case .watchdogInterval:
      return .watchdogInterval(try worker(), try coded("every", as: Duration.self))
    case .watchdogSeen:
      return .watchdogSeen(
        try worker(), at: try optional("seen", as: Int64.self).map { Instant(nanoseconds: $0) })
    case .watchdogTriggered: return .watchdogTriggered(try worker())
    case .purgeableOffered, .purged, .purgeFailed, .swapped, .trimmed, .trimFailed, .filled,
      .fillFailed, .trimLost, .suspendFailed, .staysAwake, .moved:
      return try placement(kind)
    case .disk: return .disk(try coded("disk", as: DiskReading.self))
    }
  }

  /// Reads an event about where a worker's memory is, or about the state that it has or can't get.
  private func placement(_ kind: EventKind) throws -> Event {
    switch kind {
    case .suspendFailed: .suspendFailed(try worker(), try text("why"))
    case .staysAwake: .staysAwake(try worker(), try text("why"))
    case .moved:
      .moved(
        try worker(), try coded("state", as: WorkerState.self),
        try optional("why", as: String.self))
    case .purgeableOffered: .purgeableOffered(try worker(), try bytes("bytes"))
    case .purged: .purged(try worker(), freed: try bytes("bytes"))
    case .purgeFailed: .purgeFailed(try worker(), try text("why"))
    case .trimmed: .trimmed(try worker(), try coded("trim", as: TrimResult.self))
    case .trimFailed:
      .trimFailed(try worker(), try text("why"), permanent: try boolean("permanent"))
    case .trimLost: .trimLost(try worker(), try text("why"))
    case .filled: .filled(try worker(), swapped: try bytes("bytes"))
    case .fillFailed: .fillFailed(try worker(), try text("why"))
    default: .swapped(try worker(), try bytes("bytes"))
    }
  }

  private func profile(_ profiles: ProfileCodec) throws -> WorkerProfile {
    guard let tree = record["profile"] else { throw JournalMismatch("`profile` is missing") }
    return try profiles.profile(tree)
  }

  private func time() throws -> Duration { try coded("for", as: Duration.self) }

  private func exitStatus() throws -> ExitStatus {
    if let code = try optional("code", as: Int32.self) { return .exited(code) }
    if try optional("oom", as: Bool.self) == true { return .outOfMemory }
    return try optional("signal", as: Int32.self).map { .signaled($0) } ?? .unknown
  }

  private func hibernation() throws -> HibernationResult {
    HibernationResult(
      footprintBefore: try bytes("before"), footprintAfter: try bytes("after"),
      imageSize: try bytes("image"), duration: try coded("took", as: Duration.self))
  }

  func level(_ name: String) throws -> PressureLevel {
    let text = try text(name)
    guard let level = PressureLevel.allCases.first(where: { $0.name == text }) else {
      throw JournalMismatch("`\(text)` is not a pressure level", at: name)
    }
    return level
  }
}

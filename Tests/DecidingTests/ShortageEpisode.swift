import Journal
import Lifecycle
import Policy

/// An episode of a machine's memory. In each of these, workers were once terminated without a gain.
enum ShortageEpisode: String, CaseIterable {
  /// A compiler reads its files again and again: tasks stall, with 96 % of the memory available.
  case stallsWithoutShortage
  /// Tasks stall for 2 s of each 9 s, with 96 % of the memory available.
  case flappingStalls
  /// Another program holds nearly all memory. The workers' share couldn't end the shortage.
  case foreignHog
  /// Available memory falls from 27 % to 2 % at once, and the workers hold more than is missing.
  case jumpToCritical
  /// The daemon and its workers live in a container with a limit, and fill it.
  case smallContainer

  var total: ByteCount {
    switch self {
    case .stallsWithoutShortage, .flappingStalls, .foreignHog: .gigabytes(24)
    case .jumpToCritical: .megabytes(1000)
    case .smallContainer: .megabytes(200)
    }
  }

  /// What other programs hold during the episode.
  var foreign: ByteCount {
    switch self {
    case .stallsWithoutShortage, .flappingStalls: .megabytes(700)
    case .foreignHog: .gigabytes(24) - .megabytes(330)
    case .jumpToCritical: .megabytes(850)
    case .smallContainer: .megabytes(63)
    }
  }

  /// What other programs hold before and after the episode.
  var foreignOtherwise: ByteCount {
    switch self {
    case .stallsWithoutShortage, .flappingStalls, .foreignHog: .megabytes(700)
    case .jumpToCritical: .megabytes(600)
    case .smallContainer: .megabytes(10)
    }
  }

  /// The shares of the time that some tasks and all tasks waited, in the episode's second `second`.
  func stall(in second: Int) -> (some: Double, full: Double) {
    switch self {
    case .stallsWithoutShortage: (60, 40)
    case .flappingStalls: second % 9 < 2 ? (60, 40) : (0, 0)
    case .foreignHog, .jumpToCritical, .smallContainer: (0, 0)
    }
  }

  /// Whether the workers' memory doesn't change the readings.
  var isIndependentOfWorkers: Bool {
    switch self {
    case .stallsWithoutShortage, .flappingStalls, .foreignHog: true
    case .jumpToCritical, .smallContainer: false
    }
  }
}

/// The journal of six workers in an episode.
struct EpisodeJournal {
  private(set) var segment: [UInt8] = []
  /// All directives that end a worker.
  private(set) var ends: [Directive] = []
  private(set) var hibernations = 0
  private(set) var highest = PressureLevel.normal

  private let episode: ShortageEpisode
  private var engine: Engine
  private var encoder: JournalEncoder
  private var now = Instant.zero
  private var held: [WorkerID: ByteCount] = [:]
  private var requests: Request.ID = 0

  static let sizes: [(name: String, megabytes: Int64)] = [
    ("redis", 12), ("web", 25), ("node", 22), ("ruby", 18), ("static", 15), ("postgres", 38),
  ]

  init(_ episode: ShortageEpisode, _ policy: LifecyclePolicy) throws {
    self.episode = episode
    engine = Engine(policy: policy)
    encoder = try JournalEncoder(
      engine, version: "test", run: "1", segment: 0, wall: FleetJournal.began, at: .zero)
    try send(.disk(Self.disk))
    for (name, _) in Self.sizes {
      let id = WorkerID(name)
      try send(.added(id, WorkerProfile(policy: policy)))
      requests += 1
      try send(.request(Request(id: requests, verb: .start, worker: id)))
    }
    try live(seconds: 20, isEpisode: false)
    try live(seconds: 90, isEpisode: true)
    try live(seconds: 40, isEpisode: false)
    segment = encoder.drainBytes()
  }

  var journal: [JournalSegment] { [JournalSegment(name: "episode") { [segment] in segment }] }

  private static let disk = DiskReading(
    total: .gigabytes(200), free: .gigabytes(100), images: .zero, writtenToday: .zero)

  private mutating func live(seconds: Int, isEpisode: Bool) throws {
    for second in 0..<seconds {
      let workers = held.values.reduce(ByteCount.zero, +)
      let foreign = isEpisode ? episode.foreign : episode.foreignOtherwise
      let stall = isEpisode ? episode.stall(in: second) : (some: 0, full: 0)
      if stall.full > 0 { try send(.stalled(.critical)) }
      try send(
        .memory(
          MemoryReading(
            total: episode.total, available: max(.zero, episode.total - foreign - workers),
            someStall: stall.some, fullStall: stall.full)))
      try pass(.seconds(1))
    }
  }

  private mutating func pass(_ time: Duration) throws {
    let end = now + time
    while let next = engine.nextDeadline, next <= end {
      now = max(now, next)
      try send(.deadline)
    }
    now = end
  }

  private mutating func send(_ event: Event) throws {
    var waiting = [event]
    while !waiting.isEmpty {
      let event = waiting.removeFirst()
      let directives = engine.handle(event, at: now)
      highest = max(highest, engine.pressure)
      try encoder.record(event, at: now, directives: directives)
      for directive in directives { waiting += outcomes(of: directive) }
    }
  }

  /// The outcomes of a directive in a daemon that performs everything. Only launches need time.
  private mutating func outcomes(of directive: Directive) -> [Event] {
    switch directive {
    case .launch(let id):
      now = now + .milliseconds(800)
      held[id] = Self.size(of: id)
      return [.launched(id), .footprint(id, Self.size(of: id))]
    case .checkSafePoint(let id): return [.fileLocks(id, held: 0)]
    case .suspend(let id): return [.suspended(id)]
    case .hibernate(let id):
      hibernations += 1
      let before = held.updateValue(.kilobytes(400), forKey: id) ?? .zero
      return [
        .hibernated(
          id,
          HibernationResult(
            footprintBefore: before, footprintAfter: .kilobytes(400),
            imageSize: ByteCount(before.bytes / 5), duration: .milliseconds(50)))
      ]
    case .resume(let id):
      held[id] = Self.size(of: id)
      return [.resumed(id, .milliseconds(30))]
    case .measure(let id): return [.footprint(id, held[id] ?? .zero)]
    case .terminate(let id), .kill(let id), .abort(let id):
      ends.append(directive)
      held[id] = nil
      return [.exited(id, .signaled(15))]
    default: return []
    }
  }

  private static func size(of worker: WorkerID) -> ByteCount {
    .megabytes(sizes.first { $0.name == worker.name }?.megabytes ?? 0)
  }
}

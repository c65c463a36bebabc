import JSONLines
import Journal
import Lifecycle
import Policy
import Simulation

/// Reads a journal as a history of uses. The engine isn't run again, which would take most of a minute for a
/// week: states are those of the recorded transitions.
public struct HistoryReader {
  private let since: WallTime?
  private var problems: [JournalProblem] = []
  private var header: SegmentHeader?
  private var run = ""
  private var wallOffset: Int64 = 0
  /// The clock of the daemon at the last record, and at the time `begunAt` of the history.
  private var last: Int64?
  private var base: Int64 = 0
  private var begunAt: Int64 = 0
  private var from: WallTime?
  private var to: WallTime?
  private var gaps = 0

  var workers: [WorkerID: TrackedWorker] = [:]
  var policy = LifecyclePolicy()
  var uses: [WorkerID: [Trace.Use]] = [:]
  var ends: [WorkerID: [Int64]] = [:]
  var others: [Trace.HostChange] = []
  var memory: ByteCount?
  var costs = MeasuredCosts()
  var totals = RecordedHistory.Totals()
  /// What all workers hold.
  var held: Int64 = 0

  /// - Parameter since: what came before it is read for the workers' states only.
  public init(since: WallTime? = nil) { self.since = since }

  /// The span has begun.
  var isOpen: Bool { from != nil }

  /// - Parameter progress: is called with the share that is done, 0–1.
  public mutating func read(
    _ segments: [JournalSegment], progress: (Double) -> Void = { _ in }
  ) -> RecordedHistory {
    for (place, segment) in segments.enumerated() {
      progress(Double(place) / Double(segments.count))
      read(segment)
    }
    return finished()
  }

  private mutating func read(_ segment: JournalSegment) {
    let bytes: [UInt8]
    do { bytes = try segment.read() } catch {
      problems.append(.unreadable(segment: segment.name, "\(error)"))
      return
    }
    var reader = SegmentReader(bytes, name: segment.name)
    while let item = reader.next() {
      switch item {
      case .damage(let damage): problems.append(.damage(damage))
      case .record(let record, let at): read(record, at: at.nanoseconds)
      }
    }
  }

  private mutating func read(_ record: JournalRecord, at: Int64) {
    switch record {
    case .header(let new):
      wallOffset = new.wall.nanoseconds &- new.at.nanoseconds
      if header?.run != new.run || header.map({ $0.segment + 1 != new.segment }) == true {
        beginAfterGap(at: at)
      }
      header = new
      policy = new.policy
    case .checkpoint(let engine): open(engine, at: at)
    case .clock(let wall): wallOffset = wall.nanoseconds &- at
    case .policy(let new): policy = new
    case .event(let event, let directives):
      openIfDue(at: at)
      // Time doesn't go back: a damaged record may say otherwise.
      last = max(last ?? at, at)
      if isOpen { to = WallTime(nanoseconds: at &+ wallOffset) }
      note(event, directives, at: time)
    }
  }

  /// Nanoseconds of the history.
  private var time: Int64 { begunAt + max(0, (last ?? base) - base) }

  private mutating func openIfDue(at: Int64) {
    guard !isOpen, since.map({ WallTime(nanoseconds: at &+ wallOffset) >= $0 }) ?? true else {
      return
    }
    (base, last, begunAt) = (at, at, 0)
    from = WallTime(nanoseconds: at &+ wallOffset)
    to = from
    for worker in workers.keys {
      workers[worker]?.skip(to: 0)
      workers[worker]?.began = [:]
      guard let state = workers[worker]?.state, state.isAlive else { continue }
      workers[worker]?.start = state == .hibernated ? .hibernated : .running
      workers[worker]?.wasSeen = true
    }
  }

  /// Another daemon, or a part that is missing: the time between isn't in the history.
  private mutating func beginAfterGap(at: Int64) {
    let now = time
    (begunAt, base, last) = (now, at, at)
    guard header != nil else { return }
    if isOpen { gaps += 1 }
    for worker in workers.keys {
      addElapsedTime(worker, at: now)
      workers[worker]?.began = [:]
      endUse(worker)
      if workers[worker]?.state.isAlive == true { workers[worker]?.lostAt = now }
    }
  }

  /// The workers of a checkpoint; those that it continues are known.
  private mutating func open(_ engine: Engine, at: Int64) {
    for worker in engine.workerIDs {
      guard workers[worker] == nil || workers[worker]?.lostAt != nil,
        let profile = engine.profile(of: worker), let state = engine.state(of: worker)
      else { continue }
      let footprint = engine.footprint(of: worker)
      appear(worker, profile, in: state, footprint: footprint.bytes, at: time)
    }
    openIfDue(at: at)
  }

  /// A worker that the journal's daemon has found, or that a checkpoint has.
  mutating func appear(
    _ worker: WorkerID, _ profile: WorkerProfile, in state: WorkerState, footprint: Int64?,
    at now: Int64
  ) {
    let before = workers[worker]
    if let lostAt = before?.lostAt, !state.isAlive { end(worker, at: lostAt) }
    workers[worker, default: TrackedWorker()].profile = profile
    workers[worker]?.lostAt = nil
    setState(worker, state, at: now)
    if let footprint, before == nil { setFootprint(worker, footprint) }
    guard isOpen, state.isAlive, before?.state.isAlive != true else { return }
    // A daemon that begins finds its workers at once; later it is a use like others.
    if now < 10_000_000_000 {
      workers[worker]?.start = state == .hibernated ? .hibernated : .running
    } else {
      show(worker, ownWork: false, at: now)
    }
  }

  private mutating func finished() -> RecordedHistory {
    let now = time
    for worker in workers.keys {
      addElapsedTime(worker, at: now)
      endUse(worker)
      if let lostAt = workers[worker]?.lostAt { end(worker, at: lostAt) }
    }
    let seen = workers.filter { $0.value.wasSeen }.sorted { $0.key < $1.key }
    var trace = Trace(
      name: "own history", length: now / 1_000_000, workers: [], uses: [], others: others)
    let launches = seen.compactMap { $0.value.launches.value }
    let usual = launches.isEmpty ? 1 : launches.reduce(0, +) / Double(launches.count)
    for (id, worker) in seen {
      let number = Int32(trace.workers.count)
      trace.workers.append(
        worker.worker(named: id.name, launch: worker.launches.value ?? usual))
      for var use in uses[id] ?? [] {
        use.worker = number
        trace.uses.append(use)
      }
      trace.ends += (ends[id] ?? []).map { Trace.End(at: $0 / 1_000_000, worker: number) }
    }
    trace.uses.sort { ($0.at, $0.worker) < ($1.at, $1.worker) }
    trace.ends.sort { ($0.at, $0.worker) < ($1.at, $1.worker) }
    let unobserved = seen.filter { $0.value.profile?.policy.foreground.mode == .manual }
    return RecordedHistory(
      from: from, to: to, trace: trace, policy: policy,
      profiles: Dictionary(
        seen.compactMap { id, worker in worker.profile.map { (id, $0) } }
      ) { first, _ in first },
      costs: costs, memory: memory, gaps: gaps, recorded: totals,
      unobserved: unobserved.map(\.key.name), problems: problems)
  }
}

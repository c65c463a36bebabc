import JSONLines
import Journal
import Lifecycle
import Policy
import Simulation

/// Reads a journal as a history of uses. States are those of the recorded transitions: to run the
/// engine again would take most of a minute for a week.
public struct HistoryReader {
  private let since: WallTime?
  private var header: SegmentHeader?
  private var wallOffset: Int64 = 0
  /// The clock of the daemon at the last record.
  private var last: Int64?
  /// The clock of the daemon at the time `begunAt` of the history.
  private var base: Int64 = 0
  private var begunAt: Int64 = 0

  var workers: [WorkerID: TrackedWorker] = [:]
  /// The result, without the workers.
  var history = RecordedHistory()
  /// What all workers hold, in bytes.
  var held: Int64 = 0

  /// A reader of the history from a time on.
  ///
  /// - Parameter since: the beginning of the history; `nil`: that of the journal. What came before
  ///   it is read for the workers' states only.
  public init(since: WallTime? = nil) { self.since = since }

  /// Whether the history has begun.
  var isOpen: Bool { history.from != nil }

  /// Reads segments, which must be in the order of time.
  ///
  /// - Parameter progress: called with the share that is done, 0–1.
  public mutating func read(
    _ segments: [JournalSegment], progress: (Double) -> Void = { _ in }
  ) -> RecordedHistory {
    for (index, segment) in segments.enumerated() {
      progress(Double(index) / Double(segments.count))
      let problem = segment.forEachRecord { read($0, at: $1.nanoseconds) }
      if let problem { history.problems.append(problem) }
    }
    return finished()
  }

  private mutating func read(_ record: JournalRecord, at: Int64) {
    switch record {
    case .header(let new):
      wallOffset = new.wall.nanoseconds &- new.at.nanoseconds
      if header?.run != new.run || header.map({ $0.segment + 1 != new.segment }) == true {
        beginAfterGap(at: at)
      }
      header = new
      history.policy = new.policy
    case .checkpoint(let engine): open(engine, at: at)
    case .clock(let wall): wallOffset = wall.nanoseconds &- at
    case .policy(let new): history.policy = new
    case .event(let event, let directives):
      openIfDue(at: at)
      // Time never runs backwards, although a damaged record may say so.
      last = max(last ?? at, at)
      if isOpen { history.to = WallTime(nanoseconds: at &+ wallOffset) }
      self.record(event, directives, at: time)
    }
  }

  /// The time of the last record, in nanoseconds of the history.
  private var time: Int64 { begunAt + max(0, (last ?? base) - base) }

  private mutating func openIfDue(at: Int64) {
    guard !isOpen, since.map({ WallTime(nanoseconds: at &+ wallOffset) >= $0 }) ?? true else {
      return
    }
    (base, last, begunAt) = (at, at, 0)
    history.from = WallTime(nanoseconds: at &+ wallOffset)
    history.to = history.from
    for worker in workers.keys {
      workers[worker]?.skip(to: 0)
      workers[worker]?.began = [:]
      guard let state = workers[worker]?.state, state.isAlive else { continue }
      workers[worker]?.start = state == .hibernated ? .hibernated : .running
      workers[worker]?.wasSeen = true
    }
  }

  /// Begins again after a gap: another daemon, or a missing segment. The time of the gap isn't in
  /// the history.
  private mutating func beginAfterGap(at: Int64) {
    let now = time
    (begunAt, base, last) = (now, at, at)
    guard header != nil else { return }
    if isOpen { history.gaps += 1 }
    for worker in workers.keys {
      addElapsedTime(worker, at: now)
      workers[worker]?.began = [:]
      workers[worker]?.endUse()
      if workers[worker]?.state.isAlive == true { workers[worker]?.lostAt = now }
    }
  }

  /// Records the workers of a checkpoint. Workers that are known already are skipped.
  private mutating func open(_ engine: Engine, at: Int64) {
    for worker in engine.workerIDs {
      guard workers[worker] == nil || workers[worker]?.lostAt != nil,
        let profile = engine.profile(of: worker), let state = engine.state(of: worker)
      else { continue }
      let footprint = engine.footprint(of: worker)
      let isNew = workers[worker] == nil
      appear(worker, profile, in: state, footprint: footprint.bytes, at: time)
      guard isNew else { continue }
      workers[worker]?.open(
        swapped: engine.swapped(of: worker).bytes, engine.snapshot(of: worker)?.trim?.last)
      change(worker) { $0.setFootprint(footprint.bytes) }
    }
    openIfDue(at: at)
  }

  /// Records a worker that the journal's daemon has found, or that is in a checkpoint.
  mutating func appear(
    _ worker: WorkerID, _ profile: WorkerProfile, in state: WorkerState, footprint: Int64?,
    at now: Int64
  ) {
    let before = workers[worker]
    if let lostAt = before?.lostAt, !state.isAlive { end(worker, at: lostAt) }
    workers[worker, default: TrackedWorker()].profile = profile
    workers[worker]?.lostAt = nil
    setState(worker, state, at: now)
    if let footprint, before == nil { change(worker) { $0.setFootprint(footprint) } }
    guard isOpen, state.isAlive, before?.state.isAlive != true else { return }
    // A daemon that begins finds its workers at once. A worker that is found later is in use.
    if now < 10_000_000_000 {
      workers[worker]?.start = state == .hibernated ? .hibernated : .running
    } else {
      recordUse(worker, selfInitiated: false, at: now)
    }
  }

  private mutating func finished() -> RecordedHistory {
    let now = time
    for worker in workers.keys {
      addElapsedTime(worker, at: now)
      workers[worker]?.endUse()
      endTrim(worker)
      if let lostAt = workers[worker]?.lostAt { end(worker, at: lostAt) }
    }
    let seen = workers.filter { $0.value.wasSeen }.sorted { $0.key < $1.key }
    let launches = seen.compactMap { $0.value.launches.value }
    let usual = launches.isEmpty ? 1 : launches.reduce(0, +) / Double(launches.count)
    var result = history
    result.trace.length = now / 1_000_000
    for (id, worker) in seen {
      let number = Int32(result.trace.workers.count)
      result.trace.workers.append(
        worker.worker(named: id.name, launch: worker.launches.value ?? usual))
      for var use in worker.uses {
        use.worker = number
        result.trace.uses.append(use)
      }
      result.trace.ends += worker.ends.map { Trace.End(at: $0 / 1_000_000, worker: number) }
      result.profiles[id] = worker.profile
      if worker.profile?.policy.foreground.mode == .manual { result.unobserved.append(id.name) }
    }
    result.trace.uses.sort { ($0.at, $0.worker) < ($1.at, $1.worker) }
    result.trace.ends.sort { ($0.at, $0.worker) < ($1.at, $1.worker) }
    return result
  }
}

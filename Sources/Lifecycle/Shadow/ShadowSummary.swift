import Policy

// The sum of what shadow mode would have done: memory freed against wakes paid. The worker
// continues to run, so its sleep is imagined: when it would have been suspended and hibernated, and
// what would have woken it.

/// What the policy would have freed and cost without shadow mode, for one worker or all. Its counts
/// begin when shadow mode is set.
public struct ShadowSummary: Codable, Hashable, Sendable {
  public var suspensions = 0
  public var hibernations = 0
  public var terminations = 0
  /// The memory that hibernations, purges and terminations would have freed. Each one counts, so
  /// memory that was used again counts again.
  public var freed = ByteCount.zero
  /// How often a client would have waited for the worker.
  public var wakes = 0
  /// The time that clients would have waited in all.
  public var wakeTime = Duration.zero

  public var isEmpty: Bool { self == ShadowSummary() }
  /// The average time that a client would have waited; zero without wakes.
  public var timePerWake: Duration { wakes == 0 ? .zero : wakeTime / wakes }

  static func + (left: ShadowSummary, right: ShadowSummary) -> ShadowSummary {
    ShadowSummary(
      suspensions: left.suspensions + right.suspensions,
      hibernations: left.hibernations + right.hibernations,
      terminations: left.terminations + right.terminations, freed: left.freed + right.freed,
      wakes: left.wakes + right.wakes, wakeTime: left.wakeTime + right.wakeTime)
  }
}

struct ShadowRecord: Codable, Sendable, Equatable {
  enum Depth: Codable, Sendable { case suspended, hibernated, terminated }

  var summary = ShadowSummary()
  /// How deeply the worker would sleep now. `nil`: it would be awake.
  var depth: Depth?
  var asleepSince = Instant.zero
  /// When a wake was last imagined for a worker that stayed in the background.
  var wokenAt: Instant?

  /// The time to thaw a worker that has all its memory: 1 ms. The measured time is a fraction of
  /// it.
  static let thaw = Duration.milliseconds(1)
}

extension Engine {
  /// The summary of all workers together.
  public var shadowSummary: ShadowSummary {
    workers.reduce(ShadowSummary()) { $0 + $1.shadow.summary }
  }

  /// Whether the worker is in shadow mode, and would be asleep now.
  public func imaginesSleep(of worker: WorkerID) -> Bool {
    index(of: worker).map { workers[$0].shadow.depth != nil } ?? false
  }

  /// Checks whether a worker in the background that would be asleep would be hibernated by now.
  mutating func imagineHibernation(_ index: Int) {
    guard let sleeper = workers[index].imagined else { return }
    if let obstacle = obstacle(sleeper, to: .automatic) {
      return workers.setVerdictOfDue(index, verdict(obstacle, on: sleeper))
    }
    let slept = now - sleeper.run.restingSince
    reportOnce(
      index, step: .hibernation, text: "been hibernated: suspended for \(slept.text)")
    countImagined(index, .hibernated)
  }

  mutating func countImagined(_ index: Int, _ depth: ShadowRecord.Depth) {
    if workers[index].shadow.depth == nil { workers[index].shadow.asleepSince = now }
    workers[index].shadow.depth = depth
    switch depth {
    case .suspended: workers[index].shadow.summary.suspensions += 1
    case .hibernated: workers[index].shadow.summary.hibernations += 1
    case .terminated: workers[index].shadow.summary.terminations += 1
    }
    if depth != .suspended { workers[index].shadow.summary.freed += workers[index].footprint }
  }

  /// Counts a wake: the worker is used, and a client would have waited for it.
  mutating func imagineWake(_ index: Int) {
    guard let depth = workers[index].shadow.depth else { return }
    workers[index].shadow.depth = nil
    let cost =
      switch depth {
      case .suspended: ShadowRecord.thaw
      case .hibernated: expectedResume(of: workers[index])
      case .terminated: workers[index].launchCost ?? RegretTerms.unknownLaunch
      }
    workers[index].shadow.summary.wakes += 1
    workers[index].shadow.summary.wakeTime += cost
    imagineOthers(with: index)
  }
}

extension Engine {
  /// Counts a wake into the background, with a new grace: a worker in the background that would
  /// have been asleep shows activity (`foreground.mode: manual`).
  mutating func imagineCall(_ index: Int) {
    guard workers[index].shadow.depth != nil else { return }
    imagineWake(index)
    workers[index].shadow.wokenAt = now
    workers[index].notes.subtract([.suspension, .hibernation])
  }
}

extension WorkerRecord {
  /// The worker as if it had been suspended. `nil`: it would not have been.
  var imagined: WorkerRecord? {
    guard state == .background, shadow.depth == .suspended else { return nil }
    var sleeper = self
    sleeper.state = .suspended
    sleeper.run.suspendedSince = shadow.asleepSince
    sleeper.run.restingSince = shadow.asleepSince
    sleeper.run.isMeasuredAsleep = true
    return sleeper
  }
}

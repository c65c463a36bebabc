import Policy

// What the engine has learned of workers, apart from their lives: so that it can outlast the engine. A
// daemon that starts anew would else take every launch for the first, hibernate what resumes slower
// than it launches, and forget who was put away too early.

/// Of all workers. Points in time are of the clock of the engine that gave it; see `moved(by:)`.
public struct Learned: Codable, Hashable, Sendable {
  public var workers: [WorkerID: LearnedWorker] = [:]
  /// What resumes cost, of all together.
  var resumeRate = ResumeRate()

  public init() {}

  /// The same for a clock that shows so much more.
  public func moved(by shift: Duration) -> Learned {
    var result = self
    for name in workers.keys {
      result.workers[name]?.uses.move(by: shift)
      result.workers[name]?.earlyWake.move(by: shift)
      result.workers[name]?.sleeps?.move(by: shift)
      result.workers[name]?.images?.move(by: shift)
    }
    return result
  }

  /// Those of whom there is most to tell, the rest left out: whoever was started last comes first.
  public func limited(to count: Int) -> Learned {
    guard workers.count > count else { return self }
    var result = self
    let order = workers.sorted {
      ($1.value.uses.lastStart ?? .zero, $0.key) < ($0.value.uses.lastStart ?? .zero, $1.key)
    }
    result.workers = Dictionary(uniqueKeysWithValues: order.prefix(count).map { ($0, $1) })
    return result
  }
}

/// Of one worker.
public struct LearnedWorker: Codable, Hashable, Sendable {
  var launchCost: Duration?
  var resumeCost: Duration?
  var resumeRate = ResumeRate()
  var uses = UseHistory()
  var earlyWake = EarlyWakeRecord()
  /// Not in what an earlier version kept.
  var sleeps: SleepRecord?
  var images: SleepRecord?
  public var lastExit: ExitStatus?

  /// Nothing was learned.
  public var isEmpty: Bool { self == LearnedWorker() }
}

extension Engine {
  /// An engine that knows what an earlier one has learned.
  ///
  /// - Parameter learned: by the clock of this one.
  public init(policy: LifecyclePolicy, remembering learned: Learned) {
    self.init(policy: policy)
    latestResumeRate = learned.resumeRate
    resumeRate = learned.resumeRate
    remembered = learned.workers.isEmpty ? nil : learned.workers
  }

  /// By the clock of this engine. Those who haven't been named yet are in it as they were.
  public var learned: Learned {
    var result = Learned()
    result.resumeRate = latestResumeRate
    result.workers = remembered ?? [:]
    for worker in workers {
      let known = worker.learned
      if !known.isEmpty { result.workers[worker.id] = known }
    }
    return result
  }

  /// A new record, with what is remembered of its name.
  mutating func newRecord(_ worker: WorkerID, _ profile: WorkerProfile) -> WorkerRecord {
    var record = WorkerRecord(id: worker, profile: profile, at: now)
    guard let known = remembered?.removeValue(forKey: worker) else { return record }
    if remembered?.isEmpty == true { remembered = nil }
    record.learned = known
    return record
  }
}

extension WorkerRecord {
  fileprivate var learned: LearnedWorker {
    get {
      LearnedWorker(
        launchCost: launchCost, resumeCost: resumeCost, resumeRate: resumeRate, uses: uses,
        earlyWake: earlyWake, sleeps: sleeps, images: images, lastExit: lastExit)
    }
    set {
      launchCost = newValue.launchCost
      resumeCost = newValue.resumeCost
      resumeRate = newValue.resumeRate
      uses = newValue.uses
      earlyWake = newValue.earlyWake
      sleeps = newValue.sleeps
      images = newValue.images
      lastExit = newValue.lastExit
    }
  }
}

extension UseHistory {
  mutating func move(by shift: Duration) { lastStart = lastStart.map { $0 + shift } }
}

extension EarlyWakeRecord {
  mutating func move(by shift: Duration) {
    putAwayAt = putAwayAt.map { $0 + shift }
    if count > 0 { last = last + shift }
  }
}

import Policy

// What the engine has learned about workers, apart from their states, so that it can outlast the
// engine. Without it, a restarted daemon would count every launch as the first, hibernate workers
// that resume more slowly than they launch, and forget which workers it put to sleep too early.

/// What was learned about all workers. Points in time are on the clock of the engine that made it;
/// see `moved(by:)`.
public struct Learned: Codable, Hashable, Sendable {
  /// What was learned about each worker.
  public var workers: [WorkerID: LearnedWorker] = [:]
  /// The cost of resumes, of all workers together.
  var resumeRate = ResumeRate()

  public init() {}

  /// What was learned, for a clock that is ahead by `shift`.
  public func moved(by shift: Duration) -> Learned {
    var result = self
    for name in workers.keys {
      result.workers[name]?.uses.move(by: shift)
      result.workers[name]?.earlyWake.move(by: shift)
      result.workers[name]?.sleeps?.move(by: shift)
      result.workers[name]?.images?.move(by: shift)
      result.workers[name]?.growth?.move(by: shift)
      if let until = workers[name]?.protectedUntil {
        result.workers[name]?.protectedUntil = until + shift
      }
    }
    return result
  }

  /// What was learned about the `count` workers that were started last. The others are left out.
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

/// What was learned about one worker.
public struct LearnedWorker: Codable, Hashable, Sendable {
  var launchCost: Duration?
  var resumeCost: Duration?
  var resumeRate = ResumeRate()
  var uses = UseHistory()
  var earlyWake = EarlyWakeRecord()
  /// Missing in what an earlier version has kept.
  var sleeps: SleepRecord?
  var images: SleepRecord?
  /// The growth in the run that the daemon left. Another run drops it.
  var growth: FootprintGrowth?
  /// The end of a `protect` for a time. A `protect` without a time ends with the daemon.
  var protectedUntil: Instant?
  /// How the worker's last run ended.
  public var lastExit: ExitStatus?

  /// Whether nothing was learned.
  public var isEmpty: Bool { self == LearnedWorker() }
}

extension Engine {
  /// An engine that knows what an earlier one has learned.
  ///
  /// - Parameter learned: on the clock of this engine.
  public init(policy: LifecyclePolicy, remembering learned: Learned) {
    self.init(policy: policy)
    latestResumeRate = learned.resumeRate
    resumeRate = learned.resumeRate
    remembered = learned.workers.isEmpty ? nil : learned.workers
  }

  /// What was learned, on the clock of this engine. What is known about workers that haven't been
  /// declared yet is included unchanged.
  public var learned: Learned {
    var result = Learned()
    result.resumeRate = latestResumeRate
    result.workers = remembered ?? [:]
    for worker in workers {
      let learnedWorker = worker.learned
      if !learnedWorker.isEmpty { result.workers[worker.id] = learnedWorker }
    }
    return result
  }

  /// A new record, with what was learned about a worker of that name.
  mutating func newRecord(_ worker: WorkerID, _ profile: WorkerProfile) -> WorkerRecord {
    var record = WorkerRecord(id: worker, profile: profile, at: now)
    guard let learnedWorker = remembered?.removeValue(forKey: worker) else { return record }
    if remembered?.isEmpty == true { remembered = nil }
    record.learned = learnedWorker
    return record
  }
}

extension WorkerRecord {
  fileprivate var learned: LearnedWorker {
    get {
      LearnedWorker(
        launchCost: launchCost, resumeCost: resumeCost, resumeRate: resumeRate, uses: uses,
        earlyWake: earlyWake, sleeps: sleeps, images: images, growth: run.growth,
        protectedUntil: protectedUntil, lastExit: lastExit)
    }
    set {
      launchCost = newValue.launchCost
      resumeCost = newValue.resumeCost
      resumeRate = newValue.resumeRate
      uses = newValue.uses
      earlyWake = newValue.earlyWake
      sleeps = newValue.sleeps
      images = newValue.images
      run.growth = newValue.growth
      protectedUntil = newValue.protectedUntil
      if protectedUntil != nil { isProtectedByRequest = true }
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

import Policy

/// Why a worker is in its state, why it isn't a step further, and what would move it: the answer to
/// `explain WORKER`, as data. Sentences are for people, the rest for programs.
public struct Explanation: Hashable, Sendable {
  public var worker: WorkerID
  public var state: WorkerState
  public var since: Duration
  public var cause: Cause
  /// The key of the policy that brought it here; `nil`: a person, the worker itself, or chance.
  public var causeKey: PolicyKey?
  /// The step that the policy alone would take next; `nil`: none.
  public var next: WorkerState?
  /// Everything that prevents that step, in the order of the checks. Empty: the step is under way.
  public var obstacles: [Obstacle]
  /// What would move the worker out of this state.
  public var moves: [Move]
  /// Shadow mode: the policy's decisions are logged, not applied.
  public var isShadow: Bool
  /// The worker was put to sleep too early, and has a higher band for a while.
  public var earlyWake: EarlyWake?
  /// What the last request to free memory achieved.
  public var lastShed: ShedRecord?
  /// The worker's answers to warnings that freed no memory.
  public var fruitless: FruitlessWarnings?
  /// It may lose memory.
  public var leak: LeakSuspicion?
  /// What protects the worker from termination for lack of memory.
  public var protection: Protection?
  /// After this time it ends by itself.
  public var protectionLeft: Duration?
}

/// The place in a policy file that decides something: `hibernate.max_footprint`. A caller that has
/// the files can find the line.
public struct PolicyKey: Hashable, Sendable, CustomStringConvertible {
  public var path: String
  public init(_ path: String) { self.path = path }
  public var description: String { path }
}

/// One thing that prevents a step.
public struct Obstacle: Hashable, Sendable {
  /// For programs: `too_big`.
  public var code: String
  /// A clause with the numbers: `its footprint of 21.3 MB is over hibernate.max_footprint, 16 MB`.
  public var sentence: String
  public var key: PolicyKey?
  /// The time after which it disappears by itself; `nil`: time alone doesn't remove it.
  public var clearsIn: Duration?
  /// For sizes: the measured size, and the policy's limit.
  public var measured: ByteCount?
  public var limit: ByteCount?

  init(
    _ code: String, _ sentence: String, key: String?, clearsIn: Duration? = nil,
    measured: ByteCount? = nil,
    limit: ByteCount? = nil
  ) {
    self.code = code
    self.sentence = sentence
    self.key = key.map { PolicyKey($0) }
    self.clearsIn = clearsIn
    self.measured = measured
    self.limit = limit
  }
}

/// Something that would move a worker.
public struct Move: Hashable, Sendable {
  public var to: WorkerState
  /// For programs: `request`, `time`, `traffic`, `pressure` and others.
  public var code: String
  /// What it takes: `a connection or data at one of its sockets`.
  public var sentence: String
  /// The time after which the move happens by itself.
  public var after: Duration?
  public var key: PolicyKey?

  init(
    to: WorkerState, code: String, sentence: String, after: Duration? = nil,
    key: String? = nil
  ) {
    self.to = to
    self.code = code
    self.sentence = sentence
    self.after = after
    self.key = key.map { PolicyKey($0) }
  }
}

extension Engine {
  /// `now`: the time of the question. `nil` as the result: there is no such worker.
  public func explanation(of worker: WorkerID, at now: Instant? = nil) -> Explanation? {
    guard let index = index(of: worker) else { return nil }
    let now = max(self.now, now ?? self.now)
    let record = workers[index]
    return Explanation(
      worker: worker, state: record.state, since: now - record.since, cause: record.cause,
      causeKey: record.cause.key.map { PolicyKey($0) }, next: record.nextByItself,
      obstacles: obstaclesToNext(record, at: now), moves: moves(of: record, at: now),
      isShadow: isShadow(record), earlyWake: record.earlyWakeTold(at: now),
      lastShed: record.lastShed, fruitless: record.run.fruitless,
      leak: record.state.isAlive ? record.run.growth?.suspicion : nil,
      protection: record.protection,
      protectionLeft: record.protectedUntil.map { max(.zero, $0 - now) })
  }

  private func obstaclesToNext(_ worker: WorkerRecord, at now: Instant) -> [Obstacle] {
    var obstacles =
      switch worker.state {
      case .launching: worker.launchObstacles(at: now)
      case .foreground: worker.frontObstacles(at: now)
      case .background: worker.suspensionObstacles(at: now).map(\.described)
      case .suspended: sleeperObstacles(worker, at: now)
      default: [Obstacle]()
      }
    if isShadow(worker), worker.nextByItself != nil, worker.state != .launching {
      let key = worker.modeByRequest == nil ? "mode" : nil
      obstacles.append(
        Obstacle("shadow_mode", "shadow mode: decisions are logged, not applied", key: key))
    }
    return obstacles
  }
}

extension Engine {
  private func sleeperObstacles(_ worker: WorkerRecord, at now: Instant) -> [Obstacle] {
    let isOverLimit = !isShadow(worker) && worker.excess(.hibernate, at: now) != nil
    return obstacles(worker, to: isOverLimit ? .pressure : .automatic, at: now).map(\.described)
  }
}

extension WorkerRecord {
  fileprivate var nextByItself: WorkerState? {
    switch state {
    case .launching: .foreground
    case .foreground: .background
    case .background, .suspending: .suspended
    case .suspended, .hibernating: .hibernated
    case .resuming: goal?.destination == .foreground ? .foreground : .background
    case .terminating: .terminated
    case .hibernated, .terminated: nil
    }
  }

  fileprivate func launchObstacles(at now: Instant) -> [Obstacle] {
    if !run.isSpawned {
      return [Obstacle("not_spawned", "its process has not been started yet", key: nil)]
    }
    guard profile.announcesReadiness else { return [] }
    return [Obstacle("not_ready", "it has not reported readiness yet", key: nil)]
  }

  fileprivate func frontObstacles(at now: Instant) -> [Obstacle] {
    guard policy.foreground.mode == .activity else {
      let text = "foreground.mode is manual: only a request moves it to the background"
      return [Obstacle("manual_foreground", text, key: "foreground.mode")]
    }
    guard let idleAt, now < idleAt else { return [] }
    let whole = policy.foreground.idleAfter
    let text =
      "idle for \((whole - (idleAt - now)).spoken) of foreground.idle_after \(whole.spoken)"
    return [Obstacle("idle_time", text, key: "foreground.idle_after", clearsIn: idleAt - now)]
  }
}

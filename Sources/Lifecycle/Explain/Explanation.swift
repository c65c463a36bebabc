import Policy

/// Why a worker is in its state, what prevents the next step, and what would move it: the answer to
/// `explain WORKER`, as data. Sentences are for people, the other properties for programs.
public struct Explanation: Hashable, Sendable {
  public var worker: WorkerID
  public var state: WorkerState
  /// How long the worker has been in its state.
  public var since: Duration
  public var cause: Cause
  /// The policy's key that brought the worker here. `nil`: a person, the worker itself, or chance
  /// did.
  public var causeKey: PolicyKey?
  /// The state to which the policy alone would move the worker next. `nil`: none.
  public var next: WorkerState?
  /// Everything that prevents that step, in the order of the checks. Empty: the step is under way.
  public var obstacles: [Obstacle]
  /// What would move the worker out of this state.
  public var moves: [Move]
  /// Whether shadow mode applies: the policy's decisions are logged, not applied.
  public var isShadow: Bool
  /// The early wakes, because of which the worker has a higher band for a while. `nil`: there were
  /// none.
  public var earlyWake: EarlyWake?
  /// What the last request to free memory achieved.
  public var lastShed: ShedRecord?
  /// The worker's answers to warnings that freed no memory. `nil`: none.
  public var fruitless: FruitlessWarnings?
  /// The suspicion that the worker leaks memory. `nil`: none.
  public var leak: LeakSuspicion?
  /// What protects the worker from termination for lack of memory. `nil`: nothing.
  public var protection: Protection?
  /// The time until the protection ends. `nil`: it has no end, or there is none.
  public var protectionLeft: Duration?
  /// Its trims. `nil`: it wasn't trimmed, has all memory in RAM, and its policy doesn't trim it.
  public var trim: TrimState?
}

/// The path of a key in a policy file, such as `hibernate.max_footprint`. A caller that has the
/// files can find the line.
public struct PolicyKey: Hashable, Sendable, CustomStringConvertible {
  public var path: String
  public init(_ path: String) { self.path = path }
  public var description: String { path }
}

/// One thing that prevents a step.
public struct Obstacle: Hashable, Sendable {
  /// The obstacle for programs, such as `too_big`.
  public var code: String
  /// A clause with the numbers, such as `its footprint of 21.3 MB is over hibernate.max_footprint,
  /// 16 MB`.
  public var sentence: String
  /// The policy's key that causes the obstacle. `nil`: none.
  public var key: PolicyKey?
  /// The time after which the obstacle ends by itself. `nil`: time alone doesn't remove it.
  public var clearsIn: Duration?
  /// The measured size, for obstacles of size.
  public var measured: ByteCount?
  /// The policy's limit, for obstacles of size.
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

/// Something that would move a worker to another state.
public struct Move: Hashable, Sendable {
  public var to: WorkerState
  /// The kind for programs: `request`, `time`, `traffic`, `pressure` and others.
  public var code: String
  /// What has to happen, as a clause: `a connection or data at one of its sockets`.
  public var sentence: String
  /// The time after which the move happens by itself. `nil`: time alone doesn't cause it.
  public var after: Duration?
  /// The policy's key that decides about the move. `nil`: none.
  public var key: PolicyKey?

  init(
    to: WorkerState, code: String, sentence: String, after: Duration? = nil,
    key: String? = nil
  ) {
    self.to = to
    self.code = code
    self.sentence = sentence
    self.after = after.map { max(.zero, $0) }
    self.key = key.map { PolicyKey($0) }
  }
}

extension Engine {
  /// The explanation of a worker's state. `nil`: there is no such worker.
  ///
  /// - Parameter now: the time of the question; `nil`: the time of the last event.
  public func explanation(of worker: WorkerID, at now: Instant? = nil) -> Explanation? {
    guard let index = index(of: worker) else { return nil }
    let now = max(self.now, now ?? self.now)
    let record = workers[index]
    return Explanation(
      worker: worker, state: record.state, since: now - record.stateSince, cause: record.cause,
      causeKey: record.cause.key.map { PolicyKey($0) }, next: record.nextByItself,
      obstacles: obstaclesToNext(record, at: now), moves: moves(of: record, at: now),
      isShadow: isShadow(record), earlyWake: record.earlyWakeSummary(at: now),
      lastShed: record.lastShed, fruitless: record.run.fruitless,
      leak: record.state.isAlive ? record.run.growth?.suspicion : nil,
      protection: record.protection,
      protectionLeft: record.protectedUntil.map { max(.zero, $0 - now) },
      trim: trimState(of: record, at: now))
  }

  private func obstaclesToNext(_ worker: WorkerRecord, at now: Instant) -> [Obstacle] {
    var obstacles =
      switch worker.state {
      case .launching: worker.launchObstacles(at: now)
      case .foreground: worker.foregroundObstacles(at: now)
      case .background: worker.suspensionObstacles(at: now).map(\.described)
      case .suspended: sleeperObstacles(worker, at: now)
      default: [Obstacle]()
      }
    if worker.nextByItself != nil, worker.state != .launching {
      obstacles += shadowObstacle(of: worker)
    }
    return obstacles
  }

  /// The obstacle of shadow mode. Empty: the worker isn't in it.
  func shadowObstacle(of worker: WorkerRecord) -> [Obstacle] {
    guard isShadow(worker) else { return [] }
    let key = worker.modeByRequest == nil ? "mode" : nil
    return [Obstacle("shadow_mode", "shadow mode: decisions are logged, not applied", key: key)]
  }

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
    case .resuming: resumesTo
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

  fileprivate func foregroundObstacles(at now: Instant) -> [Obstacle] {
    guard policy.foreground.mode == .activity else {
      let text = "foreground.mode is manual: only a request moves it to the background"
      return [Obstacle("manual_foreground", text, key: "foreground.mode")]
    }
    guard let idleAt, now < idleAt else { return [] }
    let whole = policy.foreground.idleAfter
    let text =
      "idle for \((whole - (idleAt - now)).text) of foreground.idle_after \(whole.text)"
    return [Obstacle("idle_time", text, key: "foreground.idle_after", clearsIn: idleAt - now)]
  }
}

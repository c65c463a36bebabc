import Policy

/// What trims have done for a worker in this run, and when the policy trims it next.
public struct TrimState: Hashable, Sendable {
  /// An operation that moves the memory of a running worker.
  public enum Operation: String, Codable, Hashable, Sendable { case trim, fill }

  /// All memory of a trim came back although nothing asked for it.
  public struct Loss: Hashable, Sendable {
    public var ago: Duration
    /// A clause, such as `it forks often`.
    public var reason: String

    fileprivate var sentence: String { "its memory came back \(ago.text) ago, because \(reason)" }
  }

  /// The operation that is under way. `nil`: none is.
  public var underWay: Operation?
  /// How much of the worker's footprint is in swap, or in the image of a trim.
  public var swapped: ByteCount
  /// The number of trims that moved memory.
  public var count: Int
  /// What the last trim achieved. `nil`: there was none, or its memory has been moved since, for
  /// example by a fill.
  public var last: TrimResult?
  /// The time since the last trim or fill. `nil`: there was none.
  public var sinceLast: Duration?
  /// Whether a fill came after the last trim.
  public var isFilled: Bool
  /// How much memory the last trim moved out of RAM.
  public var moved: ByteCount
  /// How much of `moved` has come back since, because the worker used it.
  public var cameBack: ByteCount
  /// The time after the trim within which more than a third of `moved` came back. `nil`: so much
  /// hasn't come back.
  public var cameBackAfter: Duration?
  /// The shortest time between two trims by the policy. It is longer than `trim.every` if too much
  /// memory came back after earlier trims.
  public var interval: Duration
  /// Why the last attempt failed. `nil`: it didn't.
  public var failure: String?
  /// Whether the policy trims the worker, as far as is known: nothing forbids it, and it hasn't
  /// failed again and again. Its memory then leaves RAM although it doesn't sleep.
  public var isByPolicy: Bool
  /// All memory of the last trim came back: when, and why. `nil`: it didn't.
  public var loss: Loss?
  /// The time until the policy trims the worker, at the earliest. `nil`: something other than time
  /// prevents it.
  public var next: Duration?
  /// Everything that prevents a trim by the policy now. Empty: nothing does.
  public var obstacles: [Obstacle]
  /// All of this for people: `trimmed 3 m ago: 52.1 MB → 3.2 MB in RAM; 1.1 MB came back since; the
  /// next trim is in 7 m at the earliest`.
  public var sentence: String
}

extension Engine {
  /// `nil`: the worker wasn't trimmed, has all memory in RAM, and its policy doesn't trim it.
  func trimState(of worker: WorkerRecord, at now: Instant) -> TrimState? {
    guard worker.state.isAlive, worker.run.trim != nil || worker.policy.trim.after != nil else {
      return nil
    }
    let trim = worker.run.trim ?? TrimHistory()
    let obstacles = trimObstacles(worker, at: now)
    let isPrevented = obstacles.contains { $0.isLasting(among: obstacles) }
    let next = isPrevented ? nil : obstacles.compactMap(\.clearsIn).max() ?? .zero
    var state = TrimState(
      underWay: trim.underWay, swapped: trim.swapped, count: trim.count, last: trim.last,
      sinceLast: trim.lastAt.map { max(.zero, now - $0) }, isFilled: trim.isFilled,
      moved: trim.moved, cameBack: trim.cameBack, cameBackAfter: trim.cameBackAfter,
      interval: trim.interval(worker.policy.trim), failure: trim.failure,
      isByPolicy: worker.isTrimmedByPolicy,
      loss: trim.last == nil && !trim.isFilled ? trim.loss(at: now) : nil, next: next,
      obstacles: obstacles, sentence: "")
    state.sentence = state.clauses(isDoubled: trim.doublings > 0).joined(separator: "; ")
    return state
  }

  private func trimObstacles(_ worker: WorkerRecord, at now: Instant) -> [Obstacle] {
    var obstacles = worker.lastingTrimObstacles
    if worker.policy.trim.after == nil {
      let isOnLadder = PressureLevel.allCases.contains { policy.ladder[$0].contains(.trim) }
      let text =
        "trim.after is never: only \(isOnLadder ? "memory pressure or " : "")a request trims it"
      obstacles.append(Obstacle("never", text, key: "trim.after"))
    }
    return obstacles + worker.passingTrimObstacles(at: now) + shadowObstacle(of: worker)
  }
}

extension WorkerRecord {
  /// What prevents a trim by the policy, and time alone doesn't remove.
  fileprivate var lastingTrimObstacles: [Obstacle] {
    var obstacles: [Obstacle] = []
    if let leader = profile.leader {
      obstacles.append(Obstacle("led", "it is controlled by \(leader)", key: nil))
    }
    if let obstacle = policy.trimObstacle ?? policy.unaskedTrimObstacle {
      obstacles.append(obstacle)
    }
    if let reason = run.trim?.permanentRefusal {
      obstacles.append(
        Obstacle("refused", "it can't be trimmed before its next launch: \(reason)", key: nil))
    }
    if run.trim?.hasGivenUp == true {
      let text =
        "its memory came back too soon \(TrimHistory.maxDoublings) times in a row, so the policy "
        + "doesn't trim it before its next launch"
      obstacles.append(Obstacle("given_up", text, key: nil))
    }
    if state != .foreground, state != .background {
      let text = "only running workers are trimmed, and it is \(state.text)"
      obstacles.append(Obstacle("not_running", text, key: nil))
    }
    return obstacles + [gainObstacle].compactMap { $0 }
  }

  private var gainObstacle: Obstacle? {
    guard run.footprint != nil else {
      return Obstacle("unmeasured", "its footprint is not known yet", key: nil)
    }
    let limit = policy.trim.minTrimGain
    guard expectedTrimGain < limit else { return nil }
    return Obstacle(
      "small_gain",
      "a trim would move \(expectedTrimGain) at most, and trim.min_gain is \(limit)",
      key: "trim.min_gain", measured: expectedTrimGain, limit: limit)
  }

  /// What prevents a trim by the policy for a while.
  fileprivate func passingTrimObstacles(at now: Instant) -> [Obstacle] {
    var obstacles: [Obstacle] = []
    if let after = policy.trim.after, now < run.runningSince + after {
      let spent = now - run.runningSince
      let text = "it has run for \(spent.text) of trim.after, \(after.text)"
      obstacles.append(Obstacle("too_early", text, key: "trim.after", clearsIn: after - spent))
    }
    guard let trim = run.trim else { return obstacles }
    let interval = trim.interval(policy.trim)
    if let lastAt = trim.lastAt, now < lastAt + interval {
      let (spent, every) = (now - lastAt, policy.trim.every.text)
      let text =
        trim.doublings == 0
        ? "it was trimmed or filled \(spent.text) ago, within trim.every, \(every)"
        : "it was trimmed \(spent.text) ago, within \(interval.text): trim.every, \(every), is "
          + "longer because too much memory came back"
      let code = trim.doublings == 0 ? "interval" : "interval_doubled"
      obstacles.append(Obstacle(code, text, key: "trim.every", clearsIn: interval - spent))
    }
    if trim.permanentRefusal == nil, let failure = trim.failure,
      let retryAt = trim.retryAt, now < retryAt
    {
      let next =
        policy.trim.after == nil ? "" : "; next attempt in \((retryAt - now).text)"
      let text = "the last attempt failed: \(failure)\(next)"
      obstacles.append(Obstacle("failed_lately", text, key: nil, clearsIn: retryAt - now))
    }
    if let loss = trim.loss(at: now), let retryAt = trim.retryAt, now < retryAt {
      obstacles.append(
        Obstacle("lost_lately", loss.sentence, key: nil, clearsIn: retryAt - now))
    }
    return obstacles
  }
}

extension TrimHistory {
  fileprivate func loss(at now: Instant) -> TrimState.Loss? {
    loss.map { TrimState.Loss(ago: max(.zero, now - $0.at), reason: $0.reason) }
  }
}

extension LifecyclePolicy {
  /// Why the policy permits no trim, also not on request. `nil`: it does.
  var trimObstacle: Obstacle? {
    let key = "trim.mechanism"
    switch trim.mechanism {
    case .off: return Obstacle("off", "trim.mechanism is off", key: key)
    case .userfaultfd where hibernate.encrypt:
      let text =
        "hibernate.encrypt is true, and images of trims (trim.mechanism: userfaultfd) aren't "
        + "encrypted"
      return Obstacle("encrypted", text, key: key)
    case .auto, .swap, .userfaultfd: return nil
    }
  }
}

extension LifecyclePolicy {
  /// Why the policy trims no worker by itself, although `trim.after` says so. Memory that must not
  /// be on a disk in plain form isn't moved to swap unless a request or a policy says so.
  var unaskedTrimObstacle: Obstacle? {
    guard hibernate.encrypt, trim.mechanism == .auto else { return nil }
    let text =
      "hibernate.encrypt is true, and swap may not be encrypted: only a request trims it, or "
      + "trim.mechanism: swap"
    return Obstacle("encrypted", text, key: "trim.mechanism")
  }
}

extension Obstacle {
  /// Whether time alone doesn't remove the obstacle. The gain may still grow while others do.
  fileprivate func isLasting(among obstacles: [Obstacle]) -> Bool {
    clearsIn == nil && (code != "small_gain" || obstacles.allSatisfy { $0.clearsIn == nil })
  }
}

extension TrimState {
  fileprivate func clauses(isDoubled: Bool) -> [String] {
    var clauses = [past].compactMap { $0 }
    if last != nil { clauses += [returned(isDoubled: isDoubled)].compactMap { $0 } }
    if last == nil, swapped > .zero { clauses.append("\(swapped) of its memory are out of RAM") }
    switch underWay {
    case .trim: return clauses + ["it is being trimmed now"]
    case .fill: return clauses + ["its memory is being moved back into RAM"]
    case nil: return clauses + future
    }
  }

  private var past: String? {
    guard let sinceLast else { return nil }
    guard let last else { return isFilled ? "filled \(sinceLast.text) ago" : loss?.sentence }
    return
      "trimmed \(sinceLast.text) ago: \(last.residentBefore) → \(last.residentAfter) in RAM"
  }

  private func returned(isDoubled: Bool) -> String? {
    guard let cameBackAfter else {
      return cameBack > .zero ? "\(cameBack) came back since" : nil
    }
    let text =
      "more than a third (\(cameBack) of \(moved)) came back within \(cameBackAfter.text)"
    return isDoubled ? "\(text), so it is trimmed every \(interval.text) at most" : text
  }

  private var future: [String] {
    let lasting = obstacles.filter {
      $0.isLasting(among: obstacles) || $0.code == "failed_lately"
    }
    // The gain doesn't matter if something else prevents each trim by the policy.
    let decisive = lasting.filter { $0.code != "small_gain" }
    guard lasting.isEmpty, let next else {
      return (decisive.isEmpty ? lasting : decisive).map(\.sentence)
    }
    return next == .zero ? [] : ["the next trim is in \(next.text) at the earliest"]
  }
}

import Policy

/// Values for keys of a worker's policy that would let the worker sleep, or sleep sooner.
public struct Remedy: Hashable, Sendable {
  public struct Setting: Hashable, Sendable {
    public var key: PolicyKey
    /// The value as a policy file has it.
    public var value: String
  }

  /// The keys and their values. Empty: no key helps.
  public var settings: [Setting]
  /// A command that has the same effect once. `nil`: none has.
  public var command: String?
  /// What happens with these values: `it is suspended 30 s after its last use`.
  public var sentence: String

  init(_ settings: KeyValuePairs<String, String>, command: String? = nil, _ sentence: String) {
    self.settings = settings.map { Setting(key: PolicyKey($0.key), value: $0.value) }
    self.command = command
    self.sentence = sentence
  }
}

extension Engine {
  /// What removes the obstacle that keeps a running worker from being suspended, or a suspended one
  /// from being hibernated. `nil`: nothing prevents it, or only time does, and not for long.
  ///
  /// - Parameters:
  ///   - quiet: the usual time between two uses; `nil`: it isn't known.
  ///   - now: the time of the question; `nil`: the time of the last event.
  public func remedy(
    of worker: WorkerID, quiet: Duration? = nil, at now: Instant? = nil
  ) -> Remedy? {
    guard let index = index(of: worker) else { return nil }
    let now = max(self.now, now ?? self.now)
    let record = workers[index]
    // The obstacles of a led worker are in its leader's engine.
    guard record.profile.leader == nil else { return nil }
    switch record.state {
    case .foreground, .background, .suspended: break
    default: return nil
    }
    if isShadow(record) {
      return Remedy(
        [:], command: "dormouse enforce \(worker)", "the policy's decisions are applied to it")
    }
    switch record.state {
    case .foreground: return record.foregroundRemedy(quiet: quiet, at: now)
    case .background: return record.suspensionRemedy(quiet: quiet, at: now)
    default: return hibernationRemedy(record, at: now)
    }
  }

  private func hibernationRemedy(_ worker: WorkerRecord, at now: Instant) -> Remedy? {
    let obstacles = obstacles(worker, to: .automatic, at: now)
    let command = "dormouse hibernate \(worker.id)"
    // Obstacles that time alone doesn't remove come first.
    let lasting = obstacles.first { $0.described.clearsIn == nil && $0.remedy() != nil }
    return (lasting ?? obstacles.last)?.remedy(command: command)
  }
}

extension WorkerRecord {
  /// A shorter wait isn't worth another value.
  private static let worthwhile = Duration.seconds(5)

  fileprivate func foregroundRemedy(quiet: Duration?, at now: Instant) -> Remedy? {
    let command = "dormouse background \(id)"
    let rules = policy.foreground
    guard rules.mode == .activity else {
      return Remedy(
        ["foreground.mode": "activity"], command: command,
        "it leaves the foreground after \(rules.idleAfter.text) without use")
    }
    guard let idleAt, idleAt - now > Self.worthwhile else { return nil }
    let idle = (quiet.map { min($0 / 3, rules.idleAfter / 2) } ?? rules.idleAfter / 2).simple
    // Together with the time in the background, it has to fit between two uses.
    guard let suspend = shorterSuspendAfter(for: quiet) else {
      return Remedy(
        ["foreground.idle_after": idle.policyText], command: command,
        "it leaves the foreground after \(idle.text) without use")
    }
    return Remedy(
      [
        "foreground.idle_after": idle.policyText, "background.suspend_after": suspend.policyText,
      ], command: command, "it is suspended \((idle + suspend).text) after its last use")
  }

  /// A shorter value for `background.suspend_after`. `nil`: the policy's value is short enough.
  private func shorterSuspendAfter(for quiet: Duration?) -> Duration? {
    guard let suspend = policy.background.suspendAfter else { return .seconds(30) }
    guard let quiet, suspend > quiet / 3 else { return nil }
    return (quiet / 3).simple
  }

  fileprivate func suspensionRemedy(quiet: Duration?, at now: Instant) -> Remedy? {
    let obstacles = suspensionObstacles(at: now)
    let command = "dormouse suspend \(id)"
    // The order of the obstacles matters: unfinished work also prevents what a person requests.
    for obstacle in obstacles {
      switch obstacle {
      case .task(let name, let left) where left > Self.worthwhile:
        let limit = (policy.background.taskLimit / 10).simple
        return Remedy(
          ["background.task_limit": limit.policyText],
          "it waits at most \(limit.text) for the task \(name)")
      case .held(let left) where left > Self.worthwhile:
        let limit = (policy.background.safePoint.hold / 10).simple
        return Remedy(
          ["background.safe_point.hold": limit.policyText],
          "X_DORMOUSE_HOLD=1 keeps it awake for \(limit.text)")
      case .never:
        let time = quiet.map { min($0 / 3, .seconds(30)).simple } ?? .seconds(30)
        return Remedy(
          ["background.suspend_after": time.policyText], command: command,
          "it is suspended after \(time.text) in the background")
      case .grace(let spent, let whole, _) where whole - spent > Self.worthwhile:
        let time = (quiet.map { min($0 / 3, whole / 2) } ?? whole / 2).simple
        return Remedy(
          ["background.suspend_after": time.policyText], command: command,
          "it is suspended after \(time.text) in the background")
      case .launchedLately(let spent, let minUptime) where minUptime - spent > Self.worthwhile:
        return Remedy(
          ["background.safe_point.after_launch": "0s"], command: command,
          "its launch doesn't delay its suspension")
      case .wokenLately(let spent, let minUptime) where minUptime - spent > Self.worthwhile:
        return Remedy(
          ["background.safe_point.after_wake": "0s"], command: command,
          "its wake doesn't delay its suspension")
      case .fileLocks(_, let left) where left > Self.worthwhile:
        return Remedy(
          ["background.safe_point.file_locks": "0s"], "it is suspended while it holds file locks")
      default: continue
      }
    }
    return nil
  }
}

extension HibernationObstacle {
  /// What would remove the obstacle. `nil`: no key does.
  ///
  /// - Parameter command: hibernates the worker once, whatever the economic limits are.
  fileprivate func remedy(command: String? = nil) -> Remedy? {
    switch self {
    case .disabled:
      Remedy(["hibernate.enabled": "true"], "suspended workers are hibernated")
    case .refusedForGood, .measuring, .unmeasured, .failedLately: nil
    case .tooBig(let size, _):
      Remedy(
        ["hibernate.max_footprint": Self.power(above: size)], command: command,
        "a worker of its size is hibernated")
    case .tooSmall(let size, _):
      Remedy(
        ["hibernate.min_footprint": "\(size.bytes / 1024 / 2)KB"], command: command,
        "a worker of its size is hibernated")
    case .overDiskBudget(let held, let adding, _):
      Remedy(
        ["hibernate.disk.budget": Self.power(above: held + adding)], "its image has room")
    case .overDailyWrites(let written, let adding, _):
      Remedy(
        ["hibernate.disk.daily_writes": Self.power(above: written + adding)],
        "its image may be written today")
    case .diskNearlyFull:
      Remedy(["hibernate.disk.min_free": "1%"], "its image may use more of the disk")
    case .slowerThanRelaunch:
      Remedy(
        ["hibernate.only_if_faster_than_relaunch": "false"], command: command,
        "it is hibernated, and keeps its state and connections")
    case .coolingDown(let spent, let whole):
      whole - spent > .seconds(5)
        ? Remedy(
          ["hibernate.cooldown": (whole / 2).simple.policyText], command: command,
          "it may be hibernated sooner after a wake") : nil
    case .onlyUnderPressure:
      Remedy(
        ["hibernate.after": "2m"], command: command,
        "it is hibernated after \(Duration.seconds(120).text) of suspension")
    case .tooEarly(let spent, let whole, _):
      whole - spent > .seconds(5)
        ? Remedy(
          ["hibernate.after": (whole / 2).simple.policyText], command: command,
          "it is hibernated after \((whole / 2).simple.text) of suspension") : nil
    }
  }

  /// The next power of two in megabytes that is at least a quarter more than `size`: footprints
  /// grow.
  private static func power(above size: ByteCount) -> String {
    var megabytes: Int64 = 1
    while megabytes << 20 < size.bytes / 4 * 5, megabytes < 1 << 30 { megabytes *= 2 }
    return megabytes < 1024 ? "\(megabytes)MB" : "\(megabytes / 1024)GB"
  }
}

extension Duration {
  /// The largest value that people would choose, at most this long and at least 1 s: 45 s becomes
  /// 30 s.
  fileprivate var simple: Duration {
    let choices: [Int64] = [
      1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400,
    ]
    return .seconds(choices.last { .seconds($0) <= self } ?? 1)
  }
}

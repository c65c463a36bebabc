import Policy

// `terminate: never`: a protected worker isn't terminated for lack of memory, whatever the
// pressure. A request, a watchdog or a probe may still end it.

/// What protects a worker from termination for lack of memory.
public enum Protection: String, Codable, Hashable, Sendable, CaseIterable {
  /// The verb `protect`, for a time or until the daemon ends.
  case request
  /// The policy: `terminate.for_memory` is false.
  case policy

  /// The reason for programs.
  public var code: String {
    switch self {
    case .request: "protected_by_request"
    case .policy: "protected_by_policy"
    }
  }

  /// The reason as a clause that follows "not terminated for lack of memory: ".
  public var sentence: String {
    switch self {
    case .request: "protected on request (`dormouse protect`)"
    case .policy: "protected by its policy (`terminate: never`)"
    }
  }

  /// The reason with the remaining time.
  ///
  /// - Parameter left: the time until the protection ends. `nil`: it has no end.
  public func sentence(for left: Duration?) -> String {
    guard let left, self == .request else { return sentence }
    return "protected on request for \(left.text) more (`dormouse protect`)"
  }

  /// The policy's key that protects the worker. `nil`: a request does.
  public var key: PolicyKey? { self == .policy ? PolicyKey(Self.path) : nil }

  static let path = "terminate.for_memory"

  /// A report such as `only protected workers are left at critical pressure: db, web; none of them
  /// is terminated for lack of memory`.
  public static func sentence(onLeft workers: [WorkerID], at level: PressureLevel) -> String {
    let shown = workers.prefix(5).map(\.name).joined(separator: ", ")
    let more = workers.count > 5 ? " and \(workers.count - 5) more" : ""
    return
      "only protected workers are left at \(level.name) pressure: \(shown)\(more); none of them is "
      + "terminated for lack of memory"
  }
}

extension Duration {
  /// The longest time for which a request can protect a worker: 30 days.
  public static let longestProtection = Duration.seconds(30 * 86_400)
}

extension WorkerRecord {
  /// What protects the worker. `nil`: it may be terminated for lack of memory.
  var protection: Protection? {
    if isProtectedByRequest == true { return .request }
    return policy.terminate.forMemory ? nil : .policy
  }
}

extension Engine {
  /// What protects the worker. `nil`: it may be terminated for lack of memory, or there is no such
  /// worker.
  public func protection(of worker: WorkerID) -> Protection? {
    index(of: worker).flatMap { workers[$0].protection }
  }

  /// When the worker's protection by request ends. `nil`: there is none, or it has no time limit.
  public func protectionEnds(of worker: WorkerID) -> Instant? {
    index(of: worker).flatMap { workers[$0].protectedUntil }
  }

  /// Ends a protection whose time is over.
  mutating func expireProtection(_ index: Int) {
    guard let until = workers[index].protectedUntil, now >= until else { return }
    workers[index].protectedUntil = nil
    workers[index].isProtectedByRequest = nil
  }

  mutating func acceptProtection(_ index: Int, _ request: Request) {
    let isOn = request.verb == .protect
    let lasting = isOn ? request.lasting.map { min($0, .longestProtection) } : nil
    workers[index].isProtectedByRequest = isOn ? true : nil
    workers[index].protectedUntil = lasting.map { now + $0 }
    let name = request.worker
    let text =
      switch (isOn, workers[index].protection) {
      case (true, _) where lasting != nil:
        "\(name) is protected for \(lasting?.text ?? ""): it isn't terminated for lack of memory"
      case (true, _): "\(name) is protected: it isn't terminated for lack of memory"
      case (false, nil): "\(name) isn't protected any more: it may be terminated for lack of memory"
      case (false, _?): "\(name) is still protected by its policy (`terminate: never`)"
      }
    emit(.answer(request.id, Answer(.done, text)))
  }

  /// Reports the protected workers that the level's rungs would terminate otherwise, because the
  /// ladder has nothing left to do at this level. The report comes once at each level of an episode
  /// of pressure.
  mutating func reportProtected(at level: PressureLevel) {
    let occasion = PressureEpisode(episode: gauge.episode, level: level)
    if let last = ladderState.protectedReportedAt, last.episode == occasion.episode,
      last.level >= level
    {
      return
    }
    refresh()
    // These groups are always up to date. So without protected workers this costs nothing, although
    // the ladder comes here at each event.
    let left = Ladder.Rung.Victims.allCases
      .filter { policy.ladder[level].contains(.terminate($0)) }
      .flatMap { workers.indices($0.protectedGroup) }
      .sorted()
    guard !left.isEmpty else { return }
    ladderState.protectedReportedAt = occasion
    emit(.protectedLeft(left.map { workers[$0].id }, level))
  }
}

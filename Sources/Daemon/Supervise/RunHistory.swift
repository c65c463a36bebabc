import Glibc
import Lifecycle
import Policy

/// How one run of a worker ended.
struct ExitRecord: Codable, Hashable, Sendable {
  /// Seconds since 1970.
  var at: Int64
  /// A clause: `it exited with status 1`.
  var why: String
  /// nil: the run couldn't be launched.
  var status: ExitStatus?
  /// The last measured footprint.
  var footprint: ByteCount
  /// The last line of its log.
  var lastWords: String?
}

/// When a worker that has ended is started again.
enum RestartPlan: Hashable {
  /// After a back-off. `why`: its last run ended.
  case backingOff(until: Instant, why: String)
  /// When the pressure is normal. `why`: it was terminated.
  case waitingForMemory(why: String)
}

/// The runs of one worker, as `RestartSupervisor` keeps them.
struct RunHistory {
  /// The latest last; at most `maxExits`.
  private(set) var exits: [ExitRecord] = []
  static let maxExits = 5

  var rules = RestartHistory()
  /// Restarts since the operator, or the daemon at its start, started it.
  var restarts = 0
  /// Terminations for memory in a row, of runs that were short.
  var memoryStreak = 0
  /// `.zero`: an earlier daemon launched it.
  var launchedAt = Instant.zero
  /// How its last run ended; nil: it hasn't ended since it was requested to start.
  var lastEnd: DependencyStanding.End?
  /// Of the run that is ending: as last measured; the last line of its log; the processes that its first
  /// one left behind.
  var footprint = ByteCount.zero
  var lastWords: String?
  var leftBehind = 0
  /// The run has been ready. An earlier daemon's was.
  var hasBeenReady = true
  /// What the next run needs: the footprint of the last one, or a larger one of earlier runs if that
  /// ended before it was ready.
  private(set) var expectedFootprint: ByteCount
  /// Callers that wait to see whether the started worker stays (`nil`).
  var watchers: [(Answer?) -> Void] = []
  var plan: RestartPlan?
  /// The end of the back-off.
  var timer: EventLoop.Token?
  /// Why it isn't started any more; a clause.
  var problem: String?
  /// `restart.give_up` is the reason.
  var hasGivenUp = false
  /// The operator has asked for the end of the run, which may end for another reason first.
  var isToStop = false

  init(exits: [ExitRecord] = []) {
    self.exits = exits.suffix(Self.maxExits)
    expectedFootprint = exits.last?.footprint ?? .zero
  }

  mutating func record(_ exit: ExitRecord) {
    exits.append(exit)
    if exits.count > Self.maxExits { exits.removeFirst() }
  }

  /// A run begins.
  mutating func begin(at now: Instant) {
    leftBehind = 0
    hasBeenReady = false
    launchedAt = now
    lastEnd = nil
    problem = nil
    hasGivenUp = false
    isToStop = false
  }

  /// The run has ended. `status`: nil: it couldn't be launched.
  ///
  /// - Parameter time: seconds since 1970.
  mutating func end(_ cause: Cause, _ status: ExitStatus?, at time: Int64) {
    record(
      ExitRecord(
        at: time, why: cause.sentence, status: status, footprint: footprint, lastWords: lastWords))
    expectedFootprint = hasBeenReady ? footprint : max(footprint, expectedFootprint)
    footprint = .zero
    lastWords = nil
    lastEnd = .init(
      succeeded: status == .exited(0), wasStopped: cause.isRequested || isToStop)
  }

  /// `DORMOUSE_…`: what the next run can read of the last one.
  var environment: [String: String] {
    guard let last = exits.last else { return [:] }
    var result = [
      "DORMOUSE_LAST_EXIT": last.why, "DORMOUSE_LAST_EXIT_TIME": "\(last.at)",
      "DORMOUSE_LAST_EXIT_FOOTPRINT": "\(last.footprint.bytes)",
      "DORMOUSE_RESTARTS": "\(restarts)",
    ]
    switch last.status {
    case .exited(let code): result["DORMOUSE_LAST_EXIT_STATUS"] = "\(code)"
    // As shells have it.
    case .signaled(let signal): result["DORMOUSE_LAST_EXIT_STATUS"] = "\(128 + signal)"
    case .outOfMemory: result["DORMOUSE_LAST_EXIT_STATUS"] = "\(128 + SIGKILL)"
    case .unknown, nil: break
    }
    return result
  }

  static let variables = [
    "DORMOUSE_LAST_EXIT", "DORMOUSE_LAST_EXIT_TIME", "DORMOUSE_LAST_EXIT_FOOTPRINT",
    "DORMOUSE_LAST_EXIT_STATUS", "DORMOUSE_RESTARTS",
  ]
}

extension Cause {
  /// The operator requested it, or the daemon as it ends.
  fileprivate var isRequested: Bool {
    if case .requested = self { true } else { false }
  }

  /// The worker is to end by request.
  var isStop: Bool { self == .requested(.stop) || self == .requested(.terminate) }
}

import Control
import Glibc
import Lifecycle
import Policy

/// The end of one run of a worker.
struct ExitRecord: Codable, Hashable, Sendable {
  /// The time of the end, in seconds since 1970.
  var at: Int64
  /// The reason, as a clause: `it exited with status 1`.
  var why: String
  /// The exit status; nil if the run couldn't be launched.
  var status: ExitStatus?
  /// The last measured footprint.
  var footprint: ByteCount
  /// The last line of the worker's log.
  var lastWords: String?
}

/// The plan to start a worker again that has ended.
enum RestartPlan: Hashable {
  /// It starts after a back-off. `reason` is the end of its last run.
  case backingOff(until: Instant, reason: String)
  /// It starts when there is room in memory. `reason` is its termination.
  case waitingForMemory(reason: String)
}

/// The runs of one worker, as `RestartSupervisor` records them.
struct RunHistory {
  /// The last `maxExits` ends, the latest last.
  private(set) var exits: [ExitRecord] = []
  static let maxExits = 5

  struct End: Hashable {
    var succeeded: Bool
    /// Whether the operator stopped the run.
    var wasStopped: Bool
  }

  var rules = RestartHistory()
  /// The number of restarts since the operator started the worker, or the daemon did when it
  /// started.
  var restarts = 0
  /// The number of successive terminations for lack of memory, of runs that were short.
  var memoryStreak = 0
  /// When the run was launched; `.zero` if an earlier daemon launched it.
  var launchedAt = Instant.zero
  /// How the last run ended; nil if it hasn't ended since the worker was asked to start.
  var lastEnd: End?
  /// Three facts about the run that is ending: the last measured footprint, the last line of its
  /// log, and the number of processes that its first process left behind.
  var footprint = ByteCount.zero
  var lastLine: String?
  var leftBehind = 0
  /// Whether the run has been ready. A run that an earlier daemon launched counts as ready.
  var hasBeenReady = true
  /// The footprint that the next run is expected to need: that of the last run, or a larger one of
  /// earlier runs if the last run ended before it was ready.
  private(set) var expectedFootprint: ByteCount
  /// The callers that wait to see whether the started worker keeps running. They get nil if it
  /// does.
  var watchers: [(Answer?) -> Void] = []
  var plan: RestartPlan?
  /// The timer of the back-off's end.
  var timer: EventLoop.Token?
  /// Why the worker isn't started any more, as a clause: `gave_up` by `restart.give_up`, else
  /// `not_started`.
  var problem: CodedText?
  /// Whether the operator has asked to end the run. It may end for another reason first.
  var isToStop = false

  init(exits: [ExitRecord] = []) {
    self.exits = exits.suffix(Self.maxExits)
    expectedFootprint = exits.last?.footprint ?? .zero
  }

  mutating func record(_ exit: ExitRecord) {
    exits.append(exit)
    if exits.count > Self.maxExits { exits.removeFirst() }
  }

  /// Records that a run begins.
  mutating func begin(at now: Instant) {
    leftBehind = 0
    hasBeenReady = false
    launchedAt = now
    lastEnd = nil
    problem = nil
    isToStop = false
  }

  /// Records that the run has ended.
  ///
  /// - Parameters:
  ///   - status: nil if the run couldn't be launched.
  ///   - time: seconds since 1970.
  mutating func end(_ cause: Cause, _ status: ExitStatus?, at time: Int64) {
    record(
      ExitRecord(
        at: time, why: cause.sentence, status: status, footprint: footprint, lastWords: lastLine))
    expectedFootprint = hasBeenReady ? footprint : max(footprint, expectedFootprint)
    footprint = .zero
    lastLine = nil
    lastEnd = .init(
      succeeded: status == .exited(0), wasStopped: cause.isRequested || isToStop)
  }

  /// The variables `DORMOUSE_…`, from which the next run can read about the last one.
  var environment: [String: String] {
    guard let last = exits.last else { return [:] }
    var result = [
      "DORMOUSE_LAST_EXIT": last.why, "DORMOUSE_LAST_EXIT_TIME": "\(last.at)",
      "DORMOUSE_LAST_EXIT_FOOTPRINT": "\(last.footprint.bytes)",
      "DORMOUSE_RESTARTS": "\(restarts)",
    ]
    switch last.status {
    case .exited(let code): result["DORMOUSE_LAST_EXIT_STATUS"] = "\(code)"
    // Shells report a signal in the same way.
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
  /// Whether the operator requested it, or the daemon when it ends.
  fileprivate var isRequested: Bool {
    if case .requested = self { true } else { false }
  }

  /// Whether the worker is to end by request.
  var isStop: Bool { self == .requested(.stop) || self == .requested(.terminate) }
}

// What is recorded about a worker's runs and restarts.

extension RestartSupervisor {
  /// When the worker's run was launched; `.zero` if an earlier daemon launched it.
  func launchedAt(of id: WorkerID) -> Instant { histories[id]?.launchedAt ?? .zero }

  /// Forgets how the worker's last run ended, because the worker is asked to start.
  func forgetEnd(of id: WorkerID) { histories[id]?.lastEnd = nil }

  /// Whether the worker has failed: it ended with a failure, or wasn't started because another
  /// worker failed; and no request stopped it.
  func hasFailed(_ id: WorkerID) -> Bool {
    guard driver.state.state(of: id) == .terminated, let history = histories[id], !history.isToStop
    else { return false }
    switch history.plan {
    case .waitingForMemory: return false
    case .backingOff: return true
    case nil:
      return history.problem != nil
        || history.lastEnd.map { !$0.succeeded && !$0.wasStopped } == true
    }
  }

  /// The environment of the worker's next launch: `base` and the facts about its last run.
  /// Variables about a last run in `base` belong to the daemon's own last run, and are left out.
  func environment(of id: WorkerID, over base: [String: String]) -> [String: String] {
    base.filter { !RunHistory.variables.contains($0.key) }
      .merging(histories[id]?.environment ?? [:]) { $1 }
  }

  /// The last output of a worker that has ended, as the end of a sentence about a failed start;
  /// empty if there is none.
  func lastOutput(of id: WorkerID) -> String {
    guard driver.state.state(of: id) == .terminated,
      let line = histories[id]?.exits.last?.lastWords
    else { return "" }
    return "; last output: \(line) (`dormouse logs \(id)` shows all)"
  }
}

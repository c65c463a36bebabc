import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile

// Whether and when a worker that has ended is started again (`restart:`). The rules are `Policy`'s
// (`RestartHistory`); here are the timers, and what tells one end from another:
//
//     it ended by itself, or a watchdog or a probe of liveness ended it   by `restart.when`, after a back-off
//     it was terminated for memory     `always` and `unless-stopped`: when the pressure is normal again
//     a person stopped it, the daemon ends, it is no longer declared      stays
//
// A termination for memory is no failure: it counts towards no `give_up`, and `on-failure` leaves the
// worker until somebody starts it.

/// How one run of a worker ended.
struct ExitRecord: Codable, Hashable, Sendable {
  /// Seconds since 1970.
  var at: Int64
  /// A clause: `it exited with status 1`.
  var why: String
  /// nil: it couldn't be launched.
  var status: ExitStatus?
  /// The last that was measured.
  var footprint: ByteCount
  /// The last line of its log.
  var lastWords: String?
}

/// What is remembered of one worker's runs.
struct RunHistory {
  /// The latest last; so many at most.
  private(set) var exits: [ExitRecord] = []
  static let maxExits = 5

  var rules = RestartHistory()
  /// Restarts since a person started it, or the daemon.
  var restarts = 0
  /// Terminations for memory in a row, of runs that were short.
  var memoryStreak = 0
  var launchedAt = Instant.zero
  /// When it had last ended before; nil: it hasn't since it was asked to start.
  var lastEnd: (succeeded: Bool, wasStopped: Bool)?
  /// Of the run that is ending: as last measured; the last line of its log; the processes that its first
  /// one left behind.
  var footprint = ByteCount.zero
  var lastWords: String?
  var leftBehind = 0
  /// Those who started it, and wait to see whether it stays (`nil`).
  var watchers: [(Answer?) -> Void] = []
  /// Backing off.
  var due: (at: Instant, token: EventLoop.Token, why: String)?
  /// It comes back when the pressure is normal: why it went.
  var waitsForMemory: String?
  /// Why nobody starts it any more; a clause.
  var problem: String?

  init(exits: [ExitRecord] = []) { self.exits = exits.suffix(Self.maxExits) }

  mutating func note(_ exit: ExitRecord) {
    exits.append(exit)
    if exits.count > Self.maxExits { exits.removeFirst() }
  }

  /// `DORMOUSE_…`: what the next run is told of the last.
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

extension WorkerRuntime {
  /// With what this launch is told of the run before; never what the daemon itself was told.
  var launchEnvironment: [String: String] {
    environment.filter { !RunHistory.variables.contains($0.key) }
      .merging(runs.environment) { $1 }
  }
}

extension Daemon {
  /// At each of a worker's transitions.
  func supervise(_ runtime: WorkerRuntime, _ transition: Transition) {
    switch transition.to {
    case .launching:
      cancelRestart(of: runtime)
      runtime.runs.leftBehind = 0
      runtime.runs.launchedAt = EventLoop.now
      runtime.runs.lastEnd = nil
      runtime.runs.problem = nil
    case .terminated where transition.from != .terminated:
      ended(runtime, transition.cause)
      if transition.cause.isPersons { dropStore(of: runtime) }
      tellWatchers(of: runtime, transition.cause)
      reloadEnded(runtime, transition.cause)
    default: break
    }
    followLiveness(of: runtime, transition)
    dependencyStarter.advance()
  }

  private func ended(_ runtime: WorkerRuntime, _ cause: Cause) {
    let id = runtime.id
    var status = engine.snapshot(of: id)?.lastExit
    if case .failed = cause { status = nil }
    let succeeded = status == .exited(0)
    runtime.runs.note(
      ExitRecord(
        at: Int64(time(nil)), why: cause.sentence, status: status,
        footprint: runtime.runs.footprint, lastWords: runtime.runs.lastWords))
    runtime.runs.footprint = .zero
    runtime.runs.lastWords = nil
    let ran = EventLoop.now - runtime.runs.launchedAt
    runtime.runs.lastEnd = (succeeded, cause.isPersons)
    // Started again already, or going with the daemon.
    guard engine.state(of: id) == .terminated, !isEnding, !isLeaving, runtime.external == nil,
      workers[id] === runtime
    else { return }
    switch cause {
    case .requested, .released, .adopted, .added: break
    case .pressure: endedForMemory(runtime, ran, cause.sentence)
    default:
      let rules = runtime.configuration.restart
      let decision = runtime.runs.rules.ended(
        succeeded: succeeded, ran: ran, rules: rules, at: EventLoop.now)
      act(on: decision, runtime, cause.sentence)
    }
  }

  private func act(
    on decision: RestartHistory.Decision, _ runtime: WorkerRuntime, _ why: String
  ) {
    switch decision {
    case .stay: break
    case .restart(let delay): restart(runtime, after: delay, why)
    case .giveUp(let restarts, let window):
      let text =
        "given up after \(restarts) restarts within \(window.spoken): \(why); "
        + "start it with `dormouse start \(runtime.id)`"
      runtime.runs.problem = text
      log(.error, "\(runtime.id): \(text)")
    }
  }

  private func endedForMemory(_ runtime: WorkerRuntime, _ ran: Duration, _ why: String) {
    let rules = runtime.configuration.restart
    guard rules.condition == .always || rules.condition == .unlessStopped else { return }
    if ran > rules.backoff.max { runtime.runs.memoryStreak = 0 }
    runtime.runs.memoryStreak += 1
    runtime.runs.waitsForMemory = why
    if engine.pressure == .normal { pressureIsNormal() }
  }

  /// Those who went for memory come back, the most important first and one after the other, so that
  /// they don't bring the pressure with them all at once.
  func pressureIsNormal() {
    let waiting = workers.values.filter { $0.runs.waitsForMemory != nil }
      .sorted { ($1.configuration.importance, $0.id) < ($0.configuration.importance, $1.id) }
    for (place, runtime) in waiting.enumerated() {
      guard let why = runtime.runs.waitsForMemory else { continue }
      let backoff = runtime.configuration.restart.backoff
      let delay = backoff.delay(afterRestarts: runtime.runs.memoryStreak - 1)
      runtime.runs.waitsForMemory = nil
      restart(runtime, after: delay + .seconds(place), why, forMemory: true)
    }
  }

  private func restart(
    _ runtime: WorkerRuntime, after delay: Duration, _ why: String, forMemory: Bool = false
  ) {
    cancelRestart(of: runtime)
    let at = EventLoop.now + delay
    let token = loop.at(at) { [unowned self] in
      runtime.runs.due = nil
      guard workers[runtime.id] === runtime, !isEnding, !isLeaving else { return }
      if forMemory, engine.pressure != .normal {
        runtime.runs.waitsForMemory = why
        return
      }
      runtime.runs.restarts += 1
      dependencyStarter.start(runtime.id, .restart) { [unowned self] answer in
        if answer.code != .done { log(.error, answer.text) }
      }
    }
    runtime.runs.due = (at, token, why)
    log(.notice, "\(runtime.id): started again in \(delay.spoken): \(why)")
  }

  func cancelRestart(of runtime: WorkerRuntime) {
    if let due = runtime.runs.due { loop.cancel(due.token) }
    runtime.runs.due = nil
    runtime.runs.waitsForMemory = nil
  }

  /// A person's word counts more than what has been: their stop is no failure, and their start begins
  /// anew.
  func personAsks(_ verb: Request.Verb, _ id: WorkerID) {
    guard let runtime = workers[id] else { return }
    switch verb {
    case .start, .restart:
      cancelRestart(of: runtime)
      runtime.runs.rules.reset()
      runtime.runs.restarts = 0
      runtime.runs.memoryStreak = 0
      stoppedByPerson.set(id.name, false, disk, log)
    case .stop, .terminate:
      cancelRestart(of: runtime)
      dependencyStarter.stopWaiting(id, "\(id) was stopped before it was started")
      runtime.runs.problem = nil
      if runtime.configuration.restart.condition == .unlessStopped {
        stoppedByPerson.set(id.name, true, disk, log)
      }
    default: break
    }
  }

  /// The configuration was read again.
  func restartRulesChanged(_ runtime: WorkerRuntime) {
    let condition = runtime.configuration.restart.condition
    if condition == .never { cancelRestart(of: runtime) }
    if condition != .unlessStopped { stoppedByPerson.set(runtime.id.name, false, disk, log) }
    followLiveness(of: runtime, nil)
    // With the ports of health checks as they are now.
    runtime.traffic = nil
  }

  /// Nothing of it is to happen any more.
  func forgetPlans(of runtime: WorkerRuntime) {
    cancelRestart(of: runtime)
    dependencyStarter.stopWaiting(runtime.id, "\(runtime.id) is no longer in the configuration")
    stoppedByPerson.set(runtime.id.name, false, disk, log)
  }
}

extension Cause {
  fileprivate var isPersons: Bool {
    if case .requested = self { true } else { false }
  }
}

/// `unless-stopped`: who was stopped by a person, for the daemon's next start. A file of names.
struct StoppedByPerson {
  private let path: String
  private var names: Set<String>

  init(path: String) {
    self.path = path
    names = Set(((try? readText(path)) ?? "").split(separator: "\n").map(String.init))
  }

  func contains(_ name: String) -> Bool { names.contains(name) }

  mutating func set(_ name: String, _ isStopped: Bool, _ disk: DiskQueue, _ log: DaemonLog) {
    guard names.contains(name) != isStopped else { return }
    if isStopped { names.insert(name) } else { names.remove(name) }
    let text = names.sorted().map { $0 + "\n" }.joined()
    disk.write("\(name): that it was stopped can't be kept for later", log) { [path] in
      try replaceFile(path, with: text)
    }
  }
}

/// Either the old text stays, or the new one is there, whenever the machine stops.
///
/// - Parameter isSynced: false: only whenever the daemon stops.
func replaceFile(
  _ path: String, with text: String, isSynced: Bool = true
) throws(SystemCallError) {
  let partial = path + ".partial"
  let file = try Descriptor.open(partial, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600)
  try file.writeAll(text)
  if isSynced { _ = try systemCall("fsync", on: partial) { fsync(file.raw) } }
  try renameFile(partial, to: path)
}

import Control
import Lifecycle
import Policy

/// The wrappers that have registered with this daemon, and their workers on its ladder. For the
/// engine, such a worker has another leader (`WorkerProfile.leader`): its wrapper reports its
/// states, and the engine's directives for it are sent to the wrapper as requests. The worker is
/// known as long as the wrapper's connection exists. It belongs to the event loop's thread.
///
///     wrapper  register        ──▶ adopted, moved, footprint
///              connection ends ──▶ released, or exited
///     ladder   hibernate ──▶ the verb `hibernate` ──▶ hibernated, or hibernateFailed
///              trim      ──▶ the verb `trim`      ──▶ trimmed, or trimFailed
///              shed      ──▶ the verb `warn`      ──▶ shedAnswered
///              terminate ──▶ the verb `terminate` ──▶ its connection ends
///              kill      ──▶ SIGKILL to the wrapper, whose guardian then ends the worker
final class RegisteredWrappers {
  let driver: EngineDriver
  private let workers: WorkerRegistry
  let clock: any Timers
  let host: any WrapperHost
  private(set) var entries: [ClientID: Entry] = [:]
  /// By worker, the client whose reports the engine's worker of that name follows: the first that
  /// registered, if there are several.
  private(set) var leaders: [WorkerID: ClientID] = [:]
  var sheds: [WorkerID: Shed] = [:]
  var shedCount = 0
  /// Why this daemon's ladder has requested a hibernation, until the worker runs again. The wrapper
  /// itself only knows that there was a request.
  var requestReasons: [WorkerID: CodedText] = [:]

  /// A wrapper's last report, as long as its connection exists.
  struct Entry {
    var report: WrapperReport
    var at: Instant

    /// The report with its ages as of now.
    func current(at now: Instant) -> WorkerReport {
      var worker = report.worker
      let elapsed = (now - at).seconds
      worker.secondsInState += elapsed
      worker.secondsAsleep = worker.secondsAsleep.map { $0 + elapsed }
      worker.lastWake?.secondsAgo += elapsed
      // A foreground worker is in use.
      if worker.state != WorkerState.foreground.rawValue { worker.secondsSinceUse += elapsed }
      // The activity was true only at the time of the report.
      worker.activity = nil
      worker.wrapper = report.pid
      return worker
    }
  }

  /// A request for memory. An answer to an earlier request has another number.
  struct Shed {
    var number: Int
    var footprintBefore: ByteCount
  }

  /// How long to wait for a wrapper's answer to a directive, and not to an operator's request.
  static let timeout = Duration.seconds(60)

  init(
    driver: EngineDriver, workers: WorkerRegistry, clock: any Timers, host: any WrapperHost
  ) {
    self.driver = driver
    self.workers = workers
    self.clock = clock
    self.host = host
  }

  // MARK: queries

  /// Whether the engine's worker of this name belongs to a wrapper.
  func leads(_ id: WorkerID) -> Bool { leaders[id] != nil }

  /// Whether a wrapper has registered a worker of this name and the daemon has none.
  func isWrapped(_ worker: String?) -> Bool {
    guard let worker, workers[WorkerID(worker)] == nil else { return false }
    return entry(of: worker) != nil
  }

  private func entry(of worker: String?) -> Entry? {
    if let worker, let leader = leaders[WorkerID(worker)], let entry = entries[leader] {
      return entry
    }
    // If several wrappers have a worker of that name, the first one counts.
    return entries.filter { $0.value.report.worker.name == worker }
      .min { $0.key.number < $1.key.number }?.value
  }

  /// The wrapper's last report, with its ages as of now.
  func report(of name: String) -> WorkerReport? {
    entry(of: name).map { protected($0.current(at: clock.now)) }
  }

  /// The reports of all wrappers, by name.
  func reports() -> [WorkerReport] {
    let now = clock.now
    return entries.values.map { protected($0.current(at: now)) }.sorted { $0.name < $1.name }
  }

  /// The report with what protects the worker here: this daemon's ladder may terminate it, and its
  /// wrapper's may not. It has the ladder's reason for the worker's hibernation.
  private func protected(_ report: WorkerReport) -> WorkerReport {
    var report = report
    if let reason = requestReasons[WorkerID(report.name)], report.state == "hibernated",
      report.reason.code == CodedText(.requested(.hibernate)).code
    {
      report.reason = reason
    }
    guard let protection = protection(of: report.name) else { return report }
    (report.protection, report.protectedSeconds) = protection
    return report
  }

  private func protection(of name: String) -> (CodedText?, Double?)? {
    let left = driver.state.protectionEnds(of: WorkerID(name)).map { max(.zero, $0 - clock.now) }
    return driver.state.protection(of: WorkerID(name)).map {
      (CodedText($0, for: left), left?.seconds)
    }
  }

  /// Passes a request on to the wrapper that has the worker, and passes the answer back.
  func relay(
    _ request: ControlRequest, timeout: Duration,
    then respond: @escaping (ControlResponse) -> Void
  ) {
    guard let entry = entry(of: request.worker) else {
      return respond(Relay.failure(request.id, name: request.worker ?? "", reason: "has ended"))
    }
    host.ask(request, at: entry.report.socket, timeout: timeout) { [unowned self] in
      var answer = $0
      answer.workers = answer.workers.map { $0.map(protected) }
      if let protection = protection(of: entry.report.worker.name) {
        answer.explanation?.protection = protection.0
        answer.explanation?.protectedSeconds = protection.1
      }
      respond(answer)
    }
  }

  // MARK: reports of wrappers

  /// Handles a wrapper's report of its worker, the first one or a later one.
  ///
  /// - Returns: why the report isn't accepted; nil if it is.
  func register(_ report: WrapperReport?, from client: ClientID) -> String? {
    guard let report else { return "`register` needs a wrapper" }
    let name = report.worker.name
    if !NameRule.allows(name) { return "use \(NameRule.text)" }
    if let earlier = entries[client]?.report.worker.name, earlier != name {
      return "this connection has already registered \(earlier); each wrapper needs its own"
    }
    entries[client] = Entry(report: report, at: clock.now)
    let id = WorkerID(name)
    // If this daemon has a worker of that name, the wrapper's worker is only shown.
    if workers[id] == nil, leaders[id] ?? client == client {
      leaders[id] = client
      follow(report, as: id)
    }
    return nil
  }

  private func follow(_ report: WrapperReport, as id: WorkerID) {
    let profile = profile(of: report)
    let state = WorkerState(rawValue: report.worker.state) ?? .background
    if driver.state.state(of: id) == nil {
      driver.send(.adopted(id, profile, state.sleeps ? state : .background))
    } else if driver.state.profile(of: id) != profile {
      driver.send(.profileChanged(id, profile))
    }
    if state.runs { requestReasons[id] = nil }
    driver.send(.moved(id, state, Self.reason(in: report.worker)))
    let swapped = ByteCount(max(0, report.worker.trim?.swapped ?? 0))
    if swapped != driver.state.swapped(of: id) { driver.send(.swapped(id, swapped)) }
    driver.send(.footprint(id, ByteCount(max(0, report.worker.footprint))))
  }

  static func reason(in report: WorkerReport) -> String? {
    report.reason.text.isEmpty ? nil : String(report.reason.text.prefix(300))
  }

  /// A client's connection has ended. If the client was a wrapper, its worker has ended too.
  func didDisconnect(_ client: ClientID) {
    entries[client] = nil
    for id in leaders.filter({ $0.value == client }).keys.sorted() {
      leaders[id] = nil
      sheds[id] = nil
      requestReasons[id] = nil
      let wasEnding = driver.state.state(of: id) == .terminating
      driver.send(wasEnding ? .exited(id, .unknown) : .released(id))
      driver.send(.removed(id))
    }
  }

  /// Gives up a wrapper's worker, because the daemon is about to have a worker of this name itself.
  func giveUp(_ id: WorkerID) {
    if let leader = leaders[id] { didDisconnect(leader) }
  }

  private func profile(of report: WrapperReport) -> WorkerProfile {
    var policy = driver.state.policy
    // Only the ladder decides about this worker here. It uses the wrapper's policy.
    let wrapping = LifecyclePolicy.wrapping()
    policy.foreground.mode = .manual
    policy.background.suspendAfter = nil
    policy.background.heartbeat = nil
    policy.trim.after = nil
    policy.hibernate = wrapping.hibernate
    policy.hibernate.after = nil
    policy.terminate.grace = wrapping.terminate.grace
    var profile = WorkerProfile(policy: policy)
    profile.leader = "its wrapper, pid \(report.pid)"
    profile.mayBeTerminated = report.mayBeTerminated ?? false
    profile.canShed = report.canShed ?? false
    return profile
  }
}

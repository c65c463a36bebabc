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
  private(set) var registry = WrapperRegistry()
  var sheds: [WorkerID: Shed] = [:]
  var shedCount = 0
  /// Why this daemon's ladder has requested a hibernation, until the worker runs again. The wrapper
  /// itself only knows that there was a request.
  var requestReasons: [WorkerID: CodedText] = [:]

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
  func leads(_ id: WorkerID) -> Bool { registry.leads(id) }

  /// Whether a wrapper has registered a worker of this name and the daemon has none.
  func isWrapped(_ worker: String?) -> Bool {
    guard let worker, workers[WorkerID(worker)] == nil else { return false }
    return registry.entry(of: worker) != nil
  }

  /// The wrapper's last report, with its ages as of now.
  func report(of name: String) -> WorkerReport? {
    registry.entry(of: name).map { protected($0.current(at: clock.now)) }
  }

  /// The reports of all wrappers, by name.
  func reports() -> [WorkerReport] { registry.reports(at: clock.now).map(protected) }

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
    guard let entry = registry.entry(of: request.worker) else {
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
    let refusal = registry.register(report, from: client, at: clock.now)
    if refusal == nil { follow(client) }
    return refusal
  }

  private func follow(_ client: ClientID) {
    guard let entry = registry.entry(from: client) else { return }
    let id = WorkerID(entry.report.worker.name)
    // If this daemon has a worker of that name, the wrapper's worker is only shown.
    guard workers[id] == nil, registry.lead(id, client) else { return }
    let profile = profile(of: entry.report)
    let state = WorkerState(rawValue: entry.report.worker.state) ?? .background
    if driver.state.state(of: id) == nil {
      driver.send(.adopted(id, profile, state.sleeps ? state : .background))
    } else if driver.state.profile(of: id) != profile {
      driver.send(.profileChanged(id, profile))
    }
    if state.runs { requestReasons[id] = nil }
    driver.send(.moved(id, state, Self.reason(in: entry.report.worker)))
    let swapped = ByteCount(max(0, entry.report.worker.trim?.swapped ?? 0))
    if swapped != driver.state.swapped(of: id) { driver.send(.swapped(id, swapped)) }
    driver.send(.footprint(id, ByteCount(max(0, entry.report.worker.footprint))))
  }

  static func reason(in report: WorkerReport) -> String? {
    report.reason.text.isEmpty ? nil : String(report.reason.text.prefix(300))
  }

  /// A client's connection has ended. If the client was a wrapper, its worker has ended too.
  func didDisconnect(_ client: ClientID) {
    for id in registry.forget(client) {
      sheds[id] = nil
      requestReasons[id] = nil
      let wasEnding = driver.state.state(of: id) == .terminating
      driver.send(wasEnding ? .exited(id, .unknown) : .released(id))
      driver.send(.removed(id))
    }
  }

  /// Gives up a wrapper's worker, because the daemon is about to have a worker of this name itself.
  func giveUp(_ id: WorkerID) {
    if let leader = registry.leader(of: id) { didDisconnect(leader) }
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

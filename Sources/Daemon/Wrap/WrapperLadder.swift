import Control
import Glibc
import Lifecycle
import Linux
import Policy

// Wrapped workers on the daemon's ladder. To the engine each is a worker that is led by somebody else
// (`WorkerProfile.leader`): the wrapper tells where it stands, and the daemon's orders for memory go to
// the wrapper as requests. It is known for as long as the wrapper's connection.
//
//     wrapper     register ──▶ adopted, moved, footprint          connection ends ──▶ released, or exited
//     the ladder  hibernate ──▶ the verb `hibernate`, to its socket ──▶ hibernated, or hibernateFailed
//                 terminate ──▶ the verb `terminate`               ──▶ its connection ends
//                 kill      ──▶ SIGKILL to the wrapper, whose guardian takes the worker along

extension Daemon {
  /// Longest that a wrapper is waited for.
  private static let patience = Duration.seconds(60)

  /// A wrapper has told of its worker, for the first time or again.
  func follow(_ client: ClientID) {
    guard let entry = wrappers.entry(from: client) else { return }
    let id = WorkerID(entry.report.worker.name)
    // A worker of ours has the name: then it is only shown.
    guard workers[id] == nil, wrappers.lead(id, client) else { return }
    let profile = profile(of: entry.report)
    let state = WorkerState(rawValue: entry.report.worker.state) ?? .background
    if engine.state(of: id) == nil {
      driver.send(.adopted(id, profile, state.sleeps ? state : .background))
    } else if engine.profile(of: id) != profile {
      driver.send(.profileChanged(id, profile))
    }
    driver.send(.moved(id, state))
    driver.send(.footprint(id, ByteCount(max(0, entry.report.worker.footprint))))
  }

  /// The client has gone; if it was a wrapper, so has its worker.
  func unfollow(_ client: ClientID) {
    for id in wrappers.forget(client) {
      driver.send(engine.state(of: id) == .terminating ? .exited(id, .unknown) : .released(id))
      driver.send(.removed(id))
    }
  }

  private func profile(of report: WrapperReport) -> WorkerProfile {
    var policy = engine.policy
    // Nothing of its life is decided here but by the ladder, which goes by what a wrapper goes by.
    let own = LifecyclePolicy.wrapping()
    policy.foreground.mode = .manual
    policy.background.suspendAfter = nil
    policy.background.heartbeat = nil
    policy.hibernate = own.hibernate
    policy.hibernate.after = nil
    policy.terminate.grace = own.terminate.grace
    var profile = WorkerProfile(policy: policy)
    profile.leader = "its wrapper, pid \(report.pid)"
    profile.mayBeTerminated = report.mayBeTerminated ?? false
    return profile
  }

  /// False: the directive is for a worker of ours.
  func askWrapper(_ directive: Directive) -> Bool {
    switch directive {
    case .hibernate(let id) where wrappers.leads(id): askToHibernate(id)
    case .terminate(let id) where wrappers.leads(id): askToEnd(id)
    case .kill(let id) where wrappers.leads(id): killWrapper(of: id)
    case .inspect(let id) where wrappers.leads(id): inspectWrapped(id)
    default: return false
    }
    return true
  }

  private func askToHibernate(_ id: WorkerID) {
    let before = engine.footprint(of: id)
    let asked = EventLoop.now
    log(.notice, "\(id): its wrapper is asked to hibernate it")
    ask(.hibernate, id) { [unowned self] response in
      guard response.result == .done else {
        return driver.send(.hibernateFailed(id, response.text, permanent: false))
      }
      let took = EventLoop.now - asked
      ask(.status, id) { [unowned self] status in
        let worker = status.workers?.first
        driver.send(
          .hibernated(
            id,
            HibernationResult(
              footprintBefore: before, footprintAfter: ByteCount(worker?.footprint ?? 0),
              imageSize: ByteCount(worker?.imageSize ?? 0), duration: took)))
        // It may have been woken meanwhile, and have told so while we waited.
        if let state = worker.flatMap({ WorkerState(rawValue: $0.state) }) {
          driver.send(.moved(id, state))
        }
      }
    }
  }

  private func inspectWrapped(_ id: WorkerID) {
    ask(.status, id) { [unowned self] response in
      guard let state = (response.workers?.first?.state).flatMap(WorkerState.init(rawValue:)) else {
        return
      }
      switch state {
      case .hibernated: driver.send(.found(id, .hibernated))
      case .suspended: driver.send(.found(id, .suspended))
      case .foreground, .background: driver.send(.found(id, .running))
      default: driver.send(.found(id, .underWay))
      }
    }
  }

  private func askToEnd(_ id: WorkerID) {
    log(.warning, "\(id): its wrapper is asked to end it")
    ask(.terminate, id) { [unowned self] response in
      if response.result != .done { log(.error, response.text) }
    }
  }

  /// One request to its wrapper, which may be stopped itself.
  private func ask(
    _ verb: ControlRequest.Verb, _ id: WorkerID, then answer: @escaping (ControlResponse) -> Void
  ) {
    relay(
      ControlRequest(id: 1, verb: verb, worker: id.name), patience: Self.patience, then: answer)
  }

  /// By the kernel's word who it is, not by its own.
  private func killWrapper(of id: WorkerID) {
    guard let client = wrappers.leader(of: id), let entry = wrappers.entry(of: id.name) else {
      return
    }
    guard let pid = server?.process(of: client), pid > 1, pid == entry.report.pid,
      entry.report.mayBeTerminated == true
    else { return log(.error, "\(id): its wrapper isn't who it says, and isn't killed") }
    // The connection may have outlived the process, and its number may be another's: that one started
    // after the wrapper last reported.
    guard let process = try? ProcessStat.read(pid), process.started <= entry.at.nanoseconds else {
      return log(.error, "\(id): its wrapper, pid \(pid), has ended")
    }
    log(.warning, "\(id): its wrapper, pid \(pid), is killed, and it with that")
    do throws(SystemCallError) { try process.identity.signal(SIGKILL) } catch {
      log(.error, "\(id): its wrapper can't be killed: \(error)")
    }
  }
}

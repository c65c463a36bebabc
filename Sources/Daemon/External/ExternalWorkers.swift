import Control
import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

// `adopt` and `release`: workers that somebody else has started and goes on to supervise. They are
// suspended, hibernated, woken and reported on. Nothing here starts them, stops them, kills what they
// leave behind, or removes their cgroup.

/// What makes a worker somebody else's.
struct ExternalWorker: Sendable {
  /// As a person allowed it: when memory runs out.
  var mayBeTerminated = false
  /// In its manager's cgroup: what else that runs there.
  var jobs: ManagerJobs?
}

extension Daemon {
  func adopt(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    func refuse(_ error: AdoptionRefusal) {
      respond(
        ControlResponse(
          id: request.id, result: error.isMalformed ? .badRequest : .refused, text: error.text))
    }
    do throws(AdoptionRefusal) {
      guard let name = request.worker, let specification = request.adoption else {
        throw .malformed("`adopt` needs a name, and a pid or a cgroup")
      }
      try checkName(name)
      let limit = Self.examinationPatience
      jobs.run(about: "adoption of \(name)", within: limit) {
        Result { () throws(AdoptionRefusal) in try ExternalProcess.examine(specification) }
      } then: { [unowned self] outcome in
        do throws(AdoptionRefusal) {
          guard case .done(let result) = outcome else {
            throw .refused(
              "what \(name) would be can't be looked at within \(limit.spoken): one of its processes "
                + "is busy, or waits for a file system")
          }
          let found = try result.get()
          // Much may have happened meanwhile.
          try checkName(name)
          try checkOwners(found)
          let runtime = try take(found, as: name, specification)
          respond(
            ControlResponse(id: request.id, result: .done, text: adoptionText(runtime, found)))
        } catch { refuse(error) }
      }
    } catch { refuse(error) }
  }

  private static let examinationPatience = Duration.seconds(5)

  private func checkName(_ name: String) throws(AdoptionRefusal) {
    if isEnding || isLeaving { throw .refused("the daemon is ending") }
    if let problem = WorkerName.problem(with: name) {
      throw .malformed("`\(name)` can't be a worker's name: \(problem)")
    }
    let id = WorkerID(name)
    if isAlive(id) { throw .refused("\(name) is running already") }
    if wrappers.leads(id) { throw .refused("\(name) is the name of a wrapped worker") }
    if workers[id]?.isDeclared == true { throw .refused("\(name) is in the configuration") }
  }

  private func checkOwners(_ found: ExternalProcess) throws(AdoptionRefusal) {
    for process in found.tree.processes {
      guard let owner = workers.values.first(where: { $0.process?.owns(process.pid) == true })
      else { continue }
      throw .refused(
        "process \(process.pid) (\(process.name)) belongs to the worker \(owner.id)")
    }
  }

  private func adoptionText(_ runtime: WorkerRuntime, _ found: ExternalProcess) -> String {
    let processes =
      found.tree.processes.count == 1 ? "" : ", \(found.tree.processes.count) processes"
    return
      "\(runtime.id) is looked after (pid \(found.root.pid)\(processes)); asleep it is stopped by "
      + "signal"
  }

  private func take(
    _ found: ExternalProcess, as name: String, _ specification: AdoptionSpecification
  ) throws(AdoptionRefusal) -> WorkerRuntime {
    let importance = specification.importance ?? 0
    guard (0...100).contains(importance) else {
      throw .malformed("importance \(importance) is not between 0 and 100")
    }
    let runtime = WorkerRuntime(
      configuration: WorkerConfiguration(
        name: name, command: found.command?.arguments ?? [found.root.name],
        directory: found.command?.directory ?? "/", importance: importance, policy: engine.policy),
      environment: [:], isDeclared: false)
    runtime.external = ExternalWorker(
      mayBeTerminated: specification.mayBeTerminated ?? false,
      jobs: found.jobs)
    let plan = LaunchPlan(
      name: name, command: runtime.configuration.command,
      directory: runtime.configuration.directory, environment: [:], cgroup: found.cgroup,
      logPath: state.log(of: name))
    do {
      let process = try WorkerProcess.adopt(
        found.root.identity, plan: plan, opensMemory: false)
      if let memories = found.memories { process.take(memories) }
      try processHolder.attach(process, to: runtime)
    } catch { throw .refused("\(name) can't be adopted: \(error)") }
    workers[runtime.id] = runtime
    restarts.add(runtime.id, exits: [])
    log(.notice, "\(runtime.id): adopted pid \(found.root.pid), which somebody else has started")
    driver.send(.adopted(runtime.id, runtime.profile, .background))
    saveRecord(runtime, state: .background)
    return runtime
  }

  /// Gives it back as it was: running, with all its memory, and unknown to us.
  func release(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    func answer(_ result: ControlResponse.Result, _ text: String) {
      respond(ControlResponse(id: request.id, result: result, text: text))
    }
    guard let name = request.worker else {
      return answer(.badRequest, "`release` needs a worker")
    }
    let id = WorkerID(name)
    guard let runtime = workers[id] else {
      return answer(.unknownWorker, "there is no worker named \(name)")
    }
    guard runtime.external != nil else {
      return answer(.refused, "\(name) is Dormouse's own, and was not adopted; `stop` ends it")
    }
    release(id) { failure in
      if let failure { return answer(.failed, failure) }
      answer(.done, "\(name) is on its own again")
    }
  }

  /// Its beginning and its end aren't ours; `nil`: the verb is.
  func foreignRefusal(_ verb: Request.Verb, _ id: WorkerID) -> String? {
    guard workers[id]?.external != nil, isAlive(id) else { return nil }
    switch verb {
    case .start, .stop, .terminate:
      return "\(id) was adopted: start and end it where it is supervised, or "
        + "`dormouse release \(id)` first"
    default: return nil
    }
  }

  /// - Parameter done: with a sentence if it couldn't be woken; then it stays ours.
  func release(_ id: WorkerID, then done: @escaping (String?) -> Void) {
    guard let runtime = workers[id], isAlive(id) else { return done(nil) }
    if !runtime.isBusy, engine.state(of: id)?.runs == true {
      letGo(runtime)
      return done(nil)
    }
    request(.wake, id) { [unowned self] answer in
      guard answer.code == .done else { return done(answer.text) }
      letGo(runtime)
      done(nil)
    }
  }

  private func letGo(_ runtime: WorkerRuntime) {
    log(.notice, "\(runtime.id): released")
    forgetForeign(runtime)
    driver.send(.released(runtime.id))
    supervision.removeWorker(runtime.id)
  }

  /// Nothing is held of it any more.
  func forgetForeign(_ runtime: WorkerRuntime) {
    hibernation.forget(runtime.id.name)
    ends.clearAway(runtime)
    records.remove(runtime.id.name)
  }

  /// Whom it leaves behind is no business of ours.
  func externalRootHasEnded(_ runtime: WorkerRuntime) {
    if !runtime.isKilled, followSuccessor(runtime) { return }
    let id = runtime.id
    forgetForeign(runtime)
    driver.send(.exited(id, .unknown))
    driver.send(.removed(id))
    supervision.removeWorker(id)
  }

  /// The process by which a cgroup was known has ended, and others of it live on (a server that has
  /// replaced itself): the eldest stands for it now. False: nobody is left.
  private func followSuccessor(_ runtime: WorkerRuntime) -> Bool {
    guard let old = runtime.process, let cgroup = old.cgroup,
      let eldest = (try? old.tree())?.processes.min(by: { $0.startTime < $1.startTime })
    else { return false }
    let plan = old.plan
    do {
      let process = try WorkerProcess.adopt(eldest.identity, plan: plan, opensMemory: false)
      runtime.external?.jobs = (try? process.tree()).flatMap {
        ManagerJobs(root: eldest.identity, tree: $0)
      }
      try processHolder.attach(process, to: runtime)
      processHolder.refreshMemory(of: runtime)
      if let state = engine.state(of: runtime.id) { saveRecord(runtime, state: state) }
      log(.info, "\(runtime.id): pid \(eldest.pid) stands for \(cgroup.path) now")
      return true
    } catch { return false }
  }
}

import Control
import Lifecycle
import Linux
import Policy
import Supervision

// How a worker of another supervisor is given back, and what follows its end.
extension ExternalAdoption {
  // MARK: its release

  /// Returns it as it was: running, with all its memory, and unknown to the daemon.
  func release(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    func answer(_ result: ControlResponse.Result, _ text: String) {
      respond(ControlResponse(id: request.id, result: result, text: text))
    }
    guard let name = request.worker else {
      return answer(.badRequest, "`release` needs a worker")
    }
    let id = WorkerID(name)
    guard let worker = workers[id] else {
      return answer(.unknownWorker, "there is no worker named \(name)")
    }
    guard worker.external != nil else {
      return answer(
        .refused, "\(name) was started by Dormouse, not adopted; `dormouse stop \(name)` ends it")
    }
    let (rule, process) = (worker.external?.rule, worker.process?.identity)
    release(id) { [unowned self] failure in
      if let failure { return answer(.failed, failure) }
      guard let rule, let process else { return answer(.done, "\(name) is no longer managed") }
      rules?.wasReleased(process, from: rule)
      answer(
        .done,
        "\(name) is no longer managed; the rule \(rule) doesn't adopt it again until the rule is "
          + "changed")
    }
  }

  /// - Parameter done: with a sentence if it couldn't be woken; then it stays a worker of this daemon.
  func release(_ id: WorkerID, then done: @escaping (String?) -> Void) {
    guard let worker = workers[id], isAlive(id) else { return done(nil) }
    if !worker.isBusy, driver.state.state(of: id)?.runs == true {
      letGo(worker)
      return done(nil)
    }
    releasing.insert(id)
    ends.requests.request(.wake, id) { [unowned self] answer in
      guard answer.code == .done else {
        releasing.remove(id)
        return done(answer.text)
      }
      // It was released twice, or has ended since it was woken; another may have its name by now.
      guard workers[id] === worker else { return done(nil) }
      // The answer may have waited for the disk, and a suspension may have been under way.
      release(id, then: done)
    }
  }

  /// Why it isn't suspended any more; nil: it may be.
  func refusalToSuspend(_ id: WorkerID) -> String? {
    releasing.contains(id) ? "it is being released" : nil
  }

  private func letGo(_ worker: WorkerUnit) {
    releasing.remove(worker.id)
    ends.log(.notice, "\(worker.id): released")
    clearAway(worker)
    driver.send(.released(worker.id))
    remove(worker)
  }

  private func remove(_ worker: WorkerUnit) {
    part(worker.id)
    ends.supervision.removeWorker(worker.id)
    // A reload has declared its name meanwhile: from now on that is the configuration's worker.
    guard worker.isDeclared else { return }
    declared.addDeclared(worker.configuration)
    if let new = workers[worker.id] { ends.listening.relisten(new) }
  }

  /// The daemon holds nothing of its process any more.
  private func clearAway(_ worker: WorkerUnit) {
    ends.processes.forget(worker.id.name)
    ends.clearAway(worker)
    ends.records.remove(worker.id.name)
  }

  func save(_ worker: WorkerUnit) {
    if let state = driver.state.state(of: worker.id) { recordWriter.save(worker, state: state) }
  }

  // MARK: its end

  /// The processes that it leaves behind belong to its manager.
  func externalRootHasEnded(_ worker: WorkerUnit) {
    releasing.remove(worker.id)
    if !worker.isKilled, followSuccessor(worker) { return }
    let id = worker.id
    clearAway(worker)
    driver.send(.exited(id, .unknown))
    driver.send(.removed(id))
    remove(worker)
  }

  /// The process that represented a cgroup has ended, and others of it live on (a server that has replaced itself):
  /// the oldest represents it from now on.
  private func followSuccessor(_ worker: WorkerUnit) -> Bool {
    guard let old = worker.process, let cgroup = old.cgroup,
      // A cgroup that can't be read has been removed, and its processes have ended.
      let eldest = (try? ends.memory.tree(of: old))?.processes
        .min(by: { $0.startTime < $1.startTime })
    else { return false }
    do {
      let process = try ends.memory.hold(eldest.identity, old.plan)
      // Without a list, each look asks what runs there.
      worker.external?.jobs = (try? ends.memory.tree(of: process)).flatMap {
        ManagerJobs(root: eldest.identity, tree: $0)
      }
      try holder.adopt(process, as: worker)
    } catch { return false }
    holder.refreshMemory(of: worker)
    save(worker)
    ends.log(
      .info, "\(worker.id): pid \(eldest.pid) is now the first process of \(cgroup.path)")
    return true
  }
}

import Control
import Lifecycle
import Linux
import Policy
import Supervision

// These functions give a worker back to its supervisor, and handle its end.
extension ExternalAdoption {
  // MARK: release

  /// Gives a worker back as it was: it runs, has all its memory, and isn't known to the daemon any
  /// more.
  func release(_ call: ControlCall) {
    guard let name = call.request.worker else {
      return call.answer(.badRequest, "`release` needs a worker")
    }
    let id = WorkerID(name)
    guard let worker = workers[id] else { return call.answerUnknown(name) }
    guard worker.external != nil else {
      return call.answer(
        .refused, "\(name) was started by Dormouse, not adopted; `dormouse stop \(name)` ends it")
    }
    let (rule, process) = (worker.external?.rule, worker.process?.identity)
    release(id) { [unowned self] failure in
      if let failure { return call.answer(.failed, failure) }
      guard let rule, let process else { return call.answer(.done, "\(name) is no longer managed") }
      rules?.didRelease(process, from: rule)
      call.answer(
        .done,
        "\(name) is no longer managed; the rule \(rule) doesn't adopt it again until the rule is "
          + "changed")
    }
  }

  /// Gives a worker back.
  ///
  /// - Parameter done: gets a sentence if the worker couldn't be woken, or its memory couldn't be
  ///   moved back into RAM; then it stays a worker of this daemon.
  func release(_ id: WorkerID, then done: @escaping (String?) -> Void) {
    guard let worker = workers[id], isAlive(id) else { return done(nil) }
    releasing.insert(id)
    let runs = driver.state.state(of: id)?.runs == true
    if runs {
      // Its memory is being trimmed or filled, which takes seconds at most.
      guard !worker.isBusy else {
        ends.loop.after(.milliseconds(100)) { [weak self, weak worker] in
          guard let self, let worker, workers[id] === worker else { return done(nil) }
          release(id, then: done)
        }
        return
      }
      if !worker.mayHaveTrimImage {
        releasing.remove(id)
        ends.log(.notice, "\(id): released")
        clearAway(worker)
        driver.send(.released(id))
        remove(worker)
        return done(nil)
      }
    }
    // What is in the image of a trim is moved back while the daemon still manages the worker.
    ends.requests.request(runs ? .fill : .wake, id) { [unowned self] answer in
      guard answer.code == .done else {
        releasing.remove(id)
        return done(answer.text)
      }
      // The worker was released twice, or has ended since it was woken. Another worker may have its
      // name by now.
      guard workers[id] === worker else { return done(nil) }
      // The answer may have waited for the disk, and a suspension may be under way.
      release(id, then: done)
    }
  }

  /// Why a worker isn't suspended any more; nil if it may be.
  func refusalToSuspend(_ id: WorkerID) -> String? {
    releasing.contains(id) ? "it is being released" : nil
  }

  private func remove(_ worker: WorkerUnit) {
    removeFromPeers(worker.id)
    ends.supervision.removeWorker(worker.id)
    // If a reload has declared the name meanwhile, the configuration's worker has it from now on.
    if worker.isDeclared { ends.listening.relisten(declared.addDeclared(worker.configuration)) }
  }

  /// Drops all that the daemon has of the worker's process.
  private func clearAway(_ worker: WorkerUnit) {
    ends.processes.forget(worker.id.name)
    ends.cleanUp(worker)
    ends.records.remove(worker.id.name)
  }

  func save(_ worker: WorkerUnit) {
    if let state = driver.state.state(of: worker.id) { recordWriter.save(worker, state: state) }
  }

  // MARK: end

  /// Handles the end of an external worker's first process. The processes that it leaves behind
  /// belong to its manager.
  func externalRootDidEnd(_ worker: WorkerUnit) {
    releasing.remove(worker.id)
    if !worker.isKilled, followSuccessor(worker) { return }
    let id = worker.id
    clearAway(worker)
    driver.send(.exited(id, .unknown))
    driver.send(.removed(id))
    remove(worker)
  }

  /// Follows a process's successor: the process that represented a cgroup has ended, and others in
  /// the cgroup live (a server has replaced itself). The oldest represents the cgroup from now on.
  /// The successor of a sleeping process has fallen asleep with it, and is woken: another process
  /// is the manager's, such as the first one of the unit's next start.
  private func followSuccessor(_ worker: WorkerUnit) -> Bool {
    let sleeps = driver.state.state(of: worker.id)?.sleeps == true
    let asleep = sleeps ? Set(worker.sleepers) : []
    guard let old = worker.process, let cgroup = old.cgroup,
      // A cgroup that can't be read has been removed, and its processes have ended.
      let eldest = (try? ends.memory.tree(of: old))?.processes
        .filter({ asleep.isEmpty || asleep.contains($0.identity) })
        .min(by: { $0.startTime < $1.startTime })
    else { return false }
    do {
      let process = try ends.memory.openProcess(eldest.identity, old.plan)
      // If there is no list, each check reads what runs in the cgroup.
      worker.external?.jobs = (try? ends.memory.tree(of: process)).flatMap {
        ManagerJobs(root: eldest.identity, tree: $0)
      }
      try holder.adopt(process, as: worker)
    } catch { return false }
    holder.refreshMemory(of: worker)
    save(worker)
    ends.log(
      .info, "\(worker.id): pid \(eldest.pid) is now the first process of \(cgroup.path)")
    if sleeps {
      // Its inputs and its manager aren't watched any more. An operation may begin again.
      worker.ending = nil
      driver.send(.wakeNeeded(worker.id, "the end of its process \(old.identity.pid)"))
    }
    return true
  }
}

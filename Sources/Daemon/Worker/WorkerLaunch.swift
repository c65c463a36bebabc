import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

extension Daemon {
  func launch(_ id: WorkerID) {
    guard let runtime = workers[id] else { return }
    if let pid = unadopted(id) {
      return driver.send(
        .launchFailed(
          id,
          "an earlier daemon's process of it is still there and couldn't be adopted: end it "
            + "with `kill -9 \(pid)`, or start the daemon again"))
    }
    let attempt = LaunchAttempt(loop)
    runtime.launching = attempt
    lookUp(runtime) { [unowned self] found in
      guard runtime.launching === attempt else { return }
      switch found {
      case .success(let terms):
        attempt.cgroup = terms.cgroup
        if let refusal = terms.cgroupRefusal {
          log(.warning, "\(id): no cgroup of its own: \(refusal)")
        }
        if let limit = runtime.configuration.limits.memory {
          complainOfMemoryLimit(runtime, limit, terms.cgroup, terms.limitRefusal)
        }
        // What inherits opens nothing.
        if wrapped != nil { return begin(attempt, runtime, as: nil) }
        listening.openFiles(of: runtime, as: terms.account) { [unowned self] refusal in
          guard runtime.launching === attempt else { return }
          if let refusal { return launchFailed(runtime, attempt.cgroup, refusal) }
          openChannels(of: runtime, attempt, as: terms.account)
        }
      case .failure(let refusal): launchFailed(runtime, nil, refusal.text)
      }
    }
  }

  /// What a launch depends on, looked up and made on another thread.
  private struct LaunchTerms: Sendable {
    var account: Account?
    var cgroup: WorkerCgroup?
    var cgroupRefusal: CgroupError?
    var limitRefusal: SystemCallError?
  }

  /// Whether it may be launched, as which user, and in which cgroup. The name service, /proc, the worker's
  /// record and a change of the cgroup tree may take their time.
  private func lookUp(
    _ runtime: WorkerRuntime, then: @escaping (Result<LaunchTerms, Refusal>) -> Void
  ) {
    let (name, limit) = (runtime.id.name, WorkerStart.patience)
    // What is wrapped runs as its caller does, and none of an earlier daemon's can be there.
    let leftovers = wrapped == nil ? leftovers : nil
    let (cgroups, wanted) = (cgroups, WantedAccount(runtime.configuration))
    let limitBytes = runtime.configuration.limits.memory?.bytes
    jobs.run(about: "terms of \(name)", within: limit) { () -> Result<LaunchTerms, Refusal> in
      if let left = leftovers?.refusal(ofLaunching: name) { return .failure(Refusal(text: left)) }
      var terms = LaunchTerms()
      do throws(TermsError) {
        if leftovers != nil { terms.account = try wanted.lookUp() }
      } catch {
        return .failure(Refusal(text: "\(error)"))
      }
      guard let cgroups else { return .success(terms) }
      do throws(CgroupError) {
        terms.cgroup = try WorkerCgroup.create(in: cgroups, name: name)
      } catch { terms.cgroupRefusal = error }
      do throws(SystemCallError) {
        if let limitBytes { try terms.cgroup?.limitMemory(to: limitBytes) }
      } catch { terms.limitRefusal = error }
      return .success(terms)
    } then: { outcome in
      switch outcome {
      case .done(let result): then(result)
      case .overdue: then(.failure(Refusal(text: wanted.isSilent(limit))))
      case .busy: then(.failure(Refusal(text: wanted.isStillSilent)))
      }
    }
  }

  /// Makes the sockets over which it will talk with us, listens to them, and goes on with the launch. What is
  /// wrapped has its own caller's environment, and no channel to us.
  private func openChannels(
    of runtime: WorkerRuntime, _ attempt: LaunchAttempt, as account: Account?
  ) {
    let plan = ChannelPlan(
      name: runtime.id.name, directory: channelDirectory,
      publicDirectory: ChannelPlan.publicDirectory(of: settings.socket),
      hasNotifySocket: runtime.configuration.hasNotifySocket,
      takesDescriptors: runtime.configuration.fdstore > 0, account: account)
    socketFiles.open(plan, within: WorkerStart.patience) { [unowned self] outcome in
      guard runtime.launching === attempt else { return }
      switch outcome {
      case .done(.success(let result)):
        for remark in result.remarks { log(remark.level, "\(runtime.id): \(remark.text)") }
        makeConversation(runtime, over: result.take() ?? WorkerChannels())
        do {
          try runtime.conversation?.listen()
          try runtime.conversation?.listenToConnections()
          begin(attempt, runtime, as: account)
        } catch { launchFailed(runtime, attempt.cgroup, "\(error)") }
      case .done(.failure(let refusal)): launchFailed(runtime, attempt.cgroup, refusal.text)
      case .overdue, .busy:
        launchFailed(
          runtime, attempt.cgroup,
          "the sockets over which it talks with the daemon couldn't be made within "
            + "\(WorkerStart.patience.spoken) in \(channelDirectory): does that file system answer?"
        )
      }
    }
  }

  private func begin(_ attempt: LaunchAttempt, _ runtime: WorkerRuntime, as account: Account?) {
    do {
      prepare(try plan(for: runtime, as: account, in: attempt.cgroup), attempt, runtime)
    } catch { launchFailed(runtime, attempt.cgroup, "\(error)") }
  }

  /// Opens its files and forks. The program and the log may be in a file system that doesn't answer, and a
  /// fork into a cgroup waits for every change of any cgroup on the machine.
  private func prepare(_ plan: LaunchPlan, _ attempt: LaunchAttempt, _ runtime: WorkerRuntime) {
    let limit = WorkerStart.patience
    jobs.run(about: "launch of \(plan.name)", within: limit) {
      Result { () throws(LaunchError) in try plan.prepare().fork() }
    } then: { [unowned self] outcome in
      switch outcome {
      case .done(.success(let forked)): start(forked, attempt, runtime)
      case .done(.failure(let error)): launchFailed(runtime, attempt.cgroup, "\(error)")
      case .overdue:
        launchFailed(
          runtime, attempt.cgroup,
          "its program and log couldn't be opened within \(limit.components.seconds) s: does their "
            + "file system answer?")
      case .busy:
        launchFailed(
          runtime, attempt.cgroup,
          "an earlier launch still waits for the file system of its program or log")
      }
    }
  }

  private func start(_ forked: ForkedWorker, _ attempt: LaunchAttempt, _ runtime: WorkerRuntime) {
    attempt.begin(forked) { [unowned self] outcome in
      do {
        try launched(runtime, try outcome.get())
      } catch { launchFailed(runtime, attempt.cgroup, "\(error)") }
    }
  }

  /// Its program runs.
  private func launched(_ runtime: WorkerRuntime, _ process: WorkerProcess) throws {
    let id = runtime.id
    if let refusal = process.cgroupRefusal {
      log(.warning, "\(id): runs outside its cgroup: \(refusal)")
      let unused = process.plan.cgroup
      // What stays behind is an empty group, which the next launch takes.
      mechanics.submit(about: id.name) { try? unused?.remove(until: Deadline(in: .zero)) }
    }
    try attach(process, to: runtime)
    runtime.launching = nil
    runtime.launched = runtime.configuration
    wrapped?.letGoOfInherited()
    // From its first moment on: a daemon that dies now must leave it to the next.
    saveRecord(runtime, state: .launching)
    log(.info, "\(id): launched as pid \(process.identity.pid)")
    driver.send(.launched(id))
    startWatchdog(of: runtime)
    dependencyStarter.advance()
    if case .probe(let probe) = runtime.readiness?.rule {
      probeReadiness(runtime, probe)
    } else if runtime.readiness != nil {
      checkReadiness(runtime)
    }
  }

  private func launchFailed(_ runtime: WorkerRuntime, _ cgroup: WorkerCgroup?, _ why: String) {
    let id = runtime.id
    // It may run already, and nobody would see its end.
    let killing = runtime.process?.killing
    clearAway(runtime)
    if cgroup == nil, killing == nil { return concludeFailedLaunch(id, why) }
    // Not before the group can be used again. A child that hangs in a file system can't be removed.
    mechanics.submit(about: id.name) { [mailbox] in
      let failure = Self.failure {
        try killing?.perform(until: Deadline(in: .seconds(5)))
        try cgroup?.kill()
      }
      // What stays behind is found by the next launch (`Leftovers`).
      try? cgroup?.remove(until: Deadline(in: .seconds(1)))
      mailbox.post { daemon in
        if let failure { daemon.log(.warning, "\(id): not all of it could be killed: \(failure)") }
        daemon.concludeFailedLaunch(id, why)
      }
    }
  }

  private func concludeFailedLaunch(_ id: WorkerID, _ why: String) {
    guard let runtime = workers[id] else { return }
    runtime.launching = nil
    driver.send(.launchFailed(id, why))
    listening.offer(runtime)
    if !runtime.isDeclared { forgetOldRuns(besides: id) }
  }

  /// A process that an earlier daemon has left and we couldn't take over. Two of one name would share
  /// an image, and lose their memory to each other.
  private func unadopted(_ id: WorkerID) -> Int32? {
    guard let record = records.record(of: id.name), record.isAlive(bootID: bootID) else {
      return nil
    }
    return record.process.pid
  }

  private var leftovers: Leftovers {
    Leftovers(
      groups: [cgroups, earlierCgroups].compactMap(\.self), records: records.store,
      logs: state.logs)
  }

  private func plan(
    for runtime: WorkerRuntime, as account: Account?, in cgroup: WorkerCgroup?
  ) throws -> LaunchPlan {
    let name = runtime.id.name
    var plan = LaunchPlan(
      name: name, command: runtime.configuration.command,
      directory: runtime.configuration.directory,
      environment: restarts.environment(of: runtime.id, over: runtime.environment),
      cgroup: cgroup, logPath: state.log(of: name), notifySocket: runtime.conversation?.notifyPath,
      pressureWatch: runtime.conversation?.pressurePath)
    plan.workerSocket = runtime.conversation?.workerSocketPath
    plan.mark = mark(of: runtime.id)
    plan.watchdog = plan.notifySocket == nil ? nil : runtime.configuration.watchdog
    plan.stored = storedDescriptors(of: runtime)
    plan.inheritance = wrapped?.inheritance
    try complete(&plan, of: runtime, as: account)
    return plan
  }

  var channelDirectory: String { ChannelPlan.directory(of: settings.socket) }

  /// What the processes of a worker have in their environment. The same in the next daemon.
  func mark(of id: WorkerID) -> String {
    "\(channelDirectory)/\(CgroupRoot.sanitised(id.name))"
  }

  /// Holds a running process, ours or adopted, and listens for its end.
  func attach(_ process: WorkerProcess, to runtime: WorkerRuntime) throws {
    runtime.process = process
    if runtime.sleep == nil { makeSleep(for: runtime) }
    runtime.readiness = runtime.configuration.readiness.map(ReadinessRule.init).map {
      Readiness($0, worker: process)
    }
    runtime.exitWatch = try loop.watch(process.pidfd, .readable) { [unowned self] _ in
      rootHasEnded(runtime)
    }
  }

  /// Asks every 50 ms, as long as the worker is launching.
  private func checkReadiness(_ runtime: WorkerRuntime) {
    guard let readiness = runtime.readiness, readiness.needsChecking,
      engine.state(of: runtime.id) == .launching
    else { return }
    if let scan = readiness.scan { return search(scan, readiness, runtime) }
    if (try? readiness.check()) == true { return becameReady(runtime) }
    loop.after(.milliseconds(50)) { [unowned self] in checkReadiness(runtime) }
  }

  /// The log may be in a file system that doesn't answer, and an expression may take its time.
  private func search(_ scan: LogScan, _ readiness: Readiness, _ runtime: WorkerRuntime) {
    jobs.run(about: "log of \(runtime.id)", within: .seconds(10)) {
      Result { () throws(SystemCallError) in try scan.look() }
    } then: { [unowned self] outcome in
      guard runtime.readiness === readiness, readiness.needsChecking else { return }
      switch outcome {
      case .done(.success(true)):
        if engine.state(of: runtime.id) == .launching { return becameReady(runtime) }
      case .done(.success(false)), .busy: break
      case .done(.failure(let error)):
        complain(readiness, runtime, "its log can't be searched for readiness: \(error)")
      case .overdue:
        complain(readiness, runtime, "its log can't be read: does its file system answer?")
      }
      loop.after(.milliseconds(50)) { [unowned self] in checkReadiness(runtime) }
    }
  }

  /// Once for each launch.
  private func complain(_ readiness: Readiness, _ runtime: WorkerRuntime, _ text: String) {
    if readiness.takeComplaint() { log(.warning, "\(runtime.id): \(text)") }
  }

  func becameReady(_ runtime: WorkerRuntime) {
    runtime.readiness?.notified()
    endReadinessProbe(runtime)
    // A wrapper may have executed the real program by now.
    refreshMemory(of: runtime)
    driver.send(.ready(runtime.id))
  }

  func refreshMemory(of runtime: WorkerRuntime) {
    guard let process = runtime.process else { return }
    let (id, identity, refresh) = (runtime.id, process.identity, process.memoryRefresh)
    mechanics.submit(about: id.name) { [mailbox] in
      // What can't be opened now is tried again before it is suspended.
      guard let opened = try? refresh.perform() else { return }
      mailbox.post { daemon in
        guard let process = daemon.workers[id]?.process, process.identity == identity else {
          return
        }
        process.take(opened)
      }
    }
  }
}

extension ReadinessRule {
  init(_ readiness: WorkerConfiguration.Readiness) {
    switch readiness {
    case .notify: self = .notify
    case .tcp(let port): self = .tcp(port)
    case .logLine(let text): self = .logLine(text)
    case .notificationDescriptor(let number): self = .descriptor(number)
    case .logPattern(let pattern): self = .logPattern(pattern)
    case .probe(let probe): self = .probe(probe)
    }
  }
}

import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

// What a daemon finds when it starts: its configuration, and workers of an earlier daemon.

extension Daemon {
  func introduceWorkers() {
    for configuration in settings.configuration.workers { addDeclared(configuration) }
  }

  func addDeclared(_ configuration: WorkerConfiguration) {
    let runtime = WorkerRuntime(
      configuration: configuration,
      environment: settings.environment.merging(configuration.environment) { $1 },
      isDeclared: true)
    restarts.add(runtime.id, exits: learnedMemory.rememberedExits(of: runtime.id))
    if let leader = wrappers.leader(of: runtime.id) { unfollow(leader) }
    workers[runtime.id] = runtime
    driver.send(.added(runtime.id, runtime.profile))
  }

  /// Declared workers that start by themselves and aren't here already.
  func startWorkers() {
    // A worker of an earlier daemon that is in front stays there: it is adopted before others start.
    let verb: Request.Verb = hasFront ? .restart : .start
    let front = workers.values.first { $0.returnsToFront && adopting[$0.id] != nil }?.id
    for configuration in inStartingOrder(settings.configuration.workers)
    where configuration.autostart {
      if configuration.restart.condition == .unlessStopped,
        stoppedByPerson.contains(WorkerID(configuration.name))
      {
        log(.notice, "\(configuration.name): stays stopped, as it was told to (unless-stopped)")
        continue
      }
      let id = WorkerID(configuration.name)
      guard let front, front != id else {
        startAutomatically(id, verb)
        continue
      }
      adopting[front]?.append { [unowned self] in
        if !isEnding, !isLeaving { startAutomatically(id, verb) }
      }
    }
  }

  /// As in the configuration, but each after those that it depends on. They are launched side by side; of
  /// those that come to the foreground, the engine leaves it to the one that was asked for last.
  func inStartingOrder(_ workers: [WorkerConfiguration]) -> [WorkerConfiguration] {
    let byName = Dictionary(workers.map { ($0.name, $0) }) { first, _ in first }
    let needs = workers.map { (name: $0.name, needs: $0.dependsOn.map(\.worker)) }
    return DependencyOrder.sequence(needs).compactMap { byName[$0] }
  }

  func startAutomatically(_ id: WorkerID, _ verb: Request.Verb = .start) {
    guard engine.state(of: id) == .terminated else { return }
    dependencyStarter.start(id, verb) { [unowned self] answer in
      if answer.code != .done { log(.error, answer.text) }
    }
  }

  /// A worker is in the foreground, or returns there.
  private var hasFront: Bool {
    workers.values.contains { $0.returnsToFront || engine.state(of: $0.id) == .foreground }
  }

  func saveRecord(_ runtime: WorkerRuntime, state: WorkerState) {
    guard let process = runtime.process, state != .terminated else { return }
    // Hibernated without an image would mean that its memory is lost. It is not: it only couldn't be
    // woken after its memory was back.
    let state = state == .hibernated && runtime.image == nil ? .suspended : state
    var record = WorkerRecord(process, bootID: bootID, state: state.rawValue)
    record.imagePath = runtime.image?.path
    record.imageMark = state == .hibernated ? runtime.image?.mark?.text : nil
    record.purgeable = runtime.conversation?.offers.inodes ?? []
    record.wasInFront = state == .foreground || runtime.returnsToFront
    record.importance = runtime.configuration.importance
    record.watchdog = runtime.watchdogInterval?.wholeNanoseconds
    record.alarm = runtime.alarm?.at.nanoseconds
    record.asleepSince = runtime.asleepSince?.nanoseconds
    // From the moment at which it begins to be woken, its time-outs may have been corrected.
    record.waits = state == .resuming ? nil : runtime.waits.kept
    record.external = runtime.external.map { $0.mayBeTerminated ? .mayBeTerminated : .mayNot }
    let id = runtime.id
    records.save(record) { [log] in log(.error, "\(id): a later daemon won't find it: \($0)") }
  }

  /// Workers whose daemon has gone: they live on, and are ours now. Those that rest frozen sleep on;
  /// all others are brought back into the background, whatever state they were left in.
  func adoptSurvivors() {
    let found: (records: [WorkerRecord], failures: [WorkerRecordError])
    do throws(WorkerRecordError) {
      found = try records.loadAll()
    } catch { return log(.error, "earlier workers can't be looked for: \(error)") }
    for error in found.failures { log(.error, "\(error)") }
    for record in found.records {
      if record.isAlive(bootID: bootID) { adopt(record) } else { forget(record) }
    }
    removeOrphanedImages()
    snapshots.removeAll { !records.contains($0) }
  }

  private func forget(_ record: WorkerRecord) {
    log(.notice, "\(record.name): ended while there was no daemon")
    restarts.note(
      ExitRecord(
        at: Int64(time(nil)), why: "it ended while there was no daemon", status: .unknown,
        footprint: .zero),
      of: WorkerID(record.name))
    unlink(state.image(of: record.name))
    unlink(Hibernator.basePath(of: state.image(of: record.name)))
    snapshots.remove(record.name)
    if record.bootID == bootID, record.external == nil { removeRemains(of: record) }
    records.remove(record.name)
  }

  /// What is left in the group of a worker whose root process is gone goes with it, as it would have
  /// with a daemon. Only a group tells for sure who that is.
  private func removeRemains(of record: WorkerRecord) {
    guard let path = record.cgroupPath, access(path, F_OK) == 0 else { return }
    do throws(CgroupError) {
      let group = try WorkerCgroup(path: path)
      try group.kill()
      try group.remove(until: Deadline(in: .seconds(1)))
    } catch { log(.warning, "\(record.name): \(error)") }
  }

  private func adopt(_ record: WorkerRecord) {
    let id = WorkerID(record.name)
    let runtime =
      workers[id]
      ?? WorkerRuntime(
        configuration: WorkerConfiguration(
          name: record.name, command: record.command, directory: record.directory,
          importance: min(max(record.importance, 0), 100), policy: engine.policy),
        environment: settings.environment, isDeclared: false)
    if workers[id] == nil { restarts.add(id, exits: learnedMemory.rememberedExits(of: id)) }
    workers[id] = runtime
    runtime.asleepSince = record.asleepSince.map { Instant(nanoseconds: $0) }
    runtime.watchdogInterval = record.watchdog.map { .nanoseconds($0) }
    if let waits = record.waits { runtime.waits = TimedWaits(waits) }
    runtime.external = record.external.map {
      ExternalWorker(mayBeTerminated: $0 == .mayBeTerminated)
    }
    do {
      try takeOver(record, runtime)
    } catch {
      // Its record and its image stay, for a later daemon.
      if record.process.isAlive { return log(.error, "\(id): can't be adopted: \(error)") }
      return forget(record)
    }
    runtime.returnsToFront = record.wasInFront || record.state == WorkerState.foreground.rawValue
    guard let target = runtime.target() else { return }
    if adoptAsleep(record, runtime, target) { return }
    let path = state.image(of: record.name)
    let started = EventLoop.now
    if record.state == WorkerState.hibernated.rawValue, isAbsent(path) {
      // A resume is written down before it begins, so nobody has brought its memory back.
      let why = "its image \(path) is gone, and its memory with it"
      return recovered(
        id, .failure(HibernationError(.reading, why, .unverifiable)), image: nil, started: started)
    }
    // From here on a missing image means that the memory is back.
    saveRecord(runtime, state: .resuming)
    adopting[id] = []
    runtime.sleep?.perform { then in
      let done = loopReturn.callback(then)
      hibernation.recover(target, from: path, expecting: .of(record)) { result in
        done(
          SleepOfWorker.Recovered(result: result, length: Hibernator.lengthOnDisk(of: path)))
      }
    } then: { [unowned self] (found: SleepOfWorker.Recovered) in
      recovered(id, found.result, image: found.length, started: started)
      adoptionIsOver(id)
    }
  }

  /// Whoever waited for the worker is heard: clients, and what it has said itself meanwhile.
  func adoptionIsOver(_ id: WorkerID) {
    if let runtime = workers[id] { senses.watchdogs.startWatchdog(of: runtime) }
    if let conversation = workers[id]?.conversation {
      do throws(SystemCallError) { try conversation.listenToConnections() } catch {
        log(.warning, "\(id): adopted, but it can't talk to us: \(error)")
      }
    }
    for request in adopting.removeValue(forKey: id) ?? [] { request() }
  }

  private func takeOver(_ record: WorkerRecord, _ runtime: WorkerRuntime) throws {
    let cgroup = try record.cgroupPath.map {
      try WorkerCgroup(path: $0, isExternal: record.external != nil)
    }
    // Abstract names too: the worker knows no other.
    var channels = WorkerChannels()
    channels.notify = reopen(record.notifySocket, of: record.name) { path throws(SystemCallError) in
      try NotifySocket(
        path: path, takesDescriptors: runtime.configuration.fdstore > 0)
    }
    channels.pressure = reopen(record.pressureWatch, of: record.name) {
      path throws(SystemCallError) in try PressureWatch(path: path)
    }
    channels.talk = reopen(record.workerSocket, of: record.name) {
      path throws(SystemCallError) in try WorkerSocket(path: path)
    }
    conversations.makeConversation(runtime, over: channels)
    var plan = LaunchPlan(
      name: record.name, command: record.command, directory: record.directory,
      environment: runtime.environment, cgroup: cgroup, logPath: record.logPath,
      notifySocket: record.notifySocket, pressureWatch: record.pressureWatch)
    plan.workerSocket = record.workerSocket
    launchPlanner.complete(adopted: &plan, of: runtime)
    let process = try WorkerProcess.adopt(record.process, plan: plan)
    giveBackMemories(to: process)
    try process.refreshMemory()
    if runtime.external != nil, cgroup != nil {
      runtime.external?.jobs = ManagerJobs(root: record.process, tree: try process.tree())
    }
    try processHolder.attach(process, to: runtime)
    runtime.launched = runtime.configuration
    runtime.launched?.command = record.command
    runtime.launched?.directory = record.directory
    // What it says before the engine knows it again would be lost: it waits in the socket.
    try runtime.conversation?.listen()
  }

  /// A socket that the worker knows. One that can't be had makes it mute, and that is no reason to
  /// lose it. What cleans up old files (in /tmp, say) may have taken the directory away.
  private func reopen<Socket>(
    _ path: String?, of name: String, _ open: (String) throws(SystemCallError) -> Socket
  ) -> Socket? {
    guard let path else { return nil }
    do {
      guard let slash = path.lastIndex(of: "/"), !path.hasPrefix("@") else { return try open(path) }
      let directory = try openTrusted(String(path[..<slash]), making: true, as: .shared)
      let file = String(path[path.index(after: slash)...])
      // Its user's, where it runs as another.
      let before = try? directory.status(of: file)
      let socket = try open(path)
      if let before, before.st_uid != geteuid() {
        try directory.setOwner(of: file, user: before.st_uid, group: before.st_gid)
      }
      return socket
    } catch {
      log(.warning, "\(name): adopted, but it can't talk to us: \(error)")
      return nil
    }
  }

  /// - Parameter image: bytes; nil: there is none any more.
  private func recovered(
    _ id: WorkerID, _ result: Result<ResumeSummary, HibernationError>, image: Int64?,
    started: Instant
  ) {
    guard let runtime = workers[id] else { return }
    switch result {
    case .success(let summary):
      let pid = runtime.process?.identity.pid ?? 0
      let memory = ByteCount(Int64(summary.restored))
      log(
        .notice,
        "\(id): adopted, running again as pid \(pid)"
          + (memory > .zero ? ", \(memory) of its memory brought back" : ""))
      let place: WorkerState = runtime.returnsToFront ? .foreground : .background
      runtime.returnsToFront = false
      driver.send(.adopted(id, runtime.profile, place))
      return saveRecord(runtime, state: engine.state(of: id) ?? place)
    case .failure(let error) where error.aftermath == .intact:
      // It sleeps on, and a later try with more rights may succeed.
      log(.error, "\(id): adopted, but it can't be woken yet: \(error)")
      let path = state.image(of: id.name)
      runtime.sleep?.adopt(
        asleepWith: image.map { ImageOnDisk(path: path, length: $0) })
      let state: WorkerState = image == nil ? .suspended : .hibernated
      return driver.send(.adopted(id, runtime.profile, state))
    case .failure(let error):
      log(.error, "\(id): can't be brought back and is ended: \(error)")
      // Before the engine, which takes it for suspended, can want it awake.
      runtime.sleep?.killUnverified()
      driver.send(.adopted(id, runtime.profile, .suspended))
    }
    saveRecord(runtime, state: .background)
  }

  /// Images whose workers are gone. Not those of workers that couldn't be adopted, or whose record
  /// is damaged: while they may live, the image is all that there is of their memory.
  private func removeOrphanedImages() {
    for name in (try? listDirectory(state.images)) ?? [] {
      guard let suffix = [".image", ".image.partial", ".image.base"].first(where: name.hasSuffix),
        !records.contains(String(name.dropLast(suffix.count)))
      else { continue }
      unlink("\(state.images)/\(name)")
    }
  }
}

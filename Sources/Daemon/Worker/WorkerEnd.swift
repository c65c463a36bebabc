import CLinux
import Glibc
import Hibernation
import Lifecycle
import Linux
import Supervision

// How workers end: asked, killed, or by themselves.

extension Daemon {
  /// Asks all of it to end (as systemd does by default: a shell that is asked alone would leave its
  /// children behind), and lets it run for that.
  ///
  /// - Parameter signal: instead of its `stop_signal`. It isn't told over `DORMOUSE_WORKER_SOCKET` then.
  func terminate(_ id: WorkerID, by signal: Int32? = nil) {
    guard let runtime = workers[id], let process = runtime.process, !runtime.hasExited else {
      return
    }
    stopListening(for: runtime)
    if runtime.sleep?.isMemoryUnverified == true { return kill(id) }
    runtime.conversation?.offers.dropFound()
    let stopSignal = signal ?? runtime.configuration.stopSignal
    let all = (root: process.identity, session: process.session, cgroup: process.cgroup)
    let ask: @Sendable () -> Void = {
      // Its processes may be others by then. A tree that can't be read or signalled is killed when the grace is
      // over.
      _ = try? ProcessTree.discover(root: all.root, session: all.session, cgroup: all.cgroup)
        .signalAll(stopSignal)
    }
    let isTold =
      signal == nil
      && runtime.conversation?.lifecycle.willTerminate(
        within: runtime.configuration.policy.terminate.grace
      ) { [mechanics] in mechanics.submit(about: id.name, isUrgent: true, ask) } == true
    guard let target = runtime.target() else { return }
    mechanics.submit(about: id.name, isUrgent: true) { [mailbox] in
      // Pending while it is frozen or stopped; delivered when it goes on.
      if !isTold { ask() }
      guard let why = Self.failure({ try target.wake() }) else { return }
      mailbox.post { $0.log(.warning, "\(id): can't be woken for its end: \(why)") }
    }
  }

  func kill(_ id: WorkerID) {
    guard let runtime = workers[id], let process = runtime.process else { return }
    // All have been killed, and the root's number may be another's by now.
    if runtime.isReaped, process.cgroup == nil { return }
    runtime.isKilled = true
    runtime.endings += 1
    let killing = process.killing
    killers.submit(about: id.name, isUrgent: killing.cgroup != nil) { [mailbox, hibernation] in
      let failure = Self.failure { try killing.perform(until: Deadline(in: .seconds(5))) }
      // Not before: what is let go of without its memory must be dying.
      hibernation.forget(id.name)
      mailbox.post { $0.isKilled(id, killing, failure) }
    }
  }

  private func isKilled(_ id: WorkerID, _ killing: WorkerKilling, _ failure: String?) {
    if let failure { log(.warning, "\(id): \(failure)") }
    guard let runtime = workers[id], runtime.process?.identity == killing.root else { return }
    runtime.endings -= 1
    if runtime.hasExited { rootHasEnded(runtime) }
  }

  /// The root process is gone. While an operation is under way on another thread it isn't reaped:
  /// that could take a stop away from the tracer.
  func rootHasEnded(_ runtime: WorkerRuntime) {
    guard let process = runtime.process else { return }
    stopListening(for: runtime)
    // Before it is waited for: who sent is known until then.
    if runtime.configuration.fdstore > 0 {
      runtime.conversation?.receiveNotifications(limit: 64)
    }
    runtime.traffic = nil
    if let token = runtime.exitWatch {
      loop.unwatch(process.pidfd, token)
      runtime.exitWatch = nil
    }
    runtime.hasExited = true
    if isStillAtIt(runtime) { return lookAgainAtEnd(of: runtime, process) }
    if runtime.isLookedAt { return }
    runtime.isLookedAt = true
    withTree(of: process) { [unowned self] tree in
      guard runtime.process === process else { return }
      runtime.isLookedAt = false
      // Then this is called again when that has ended.
      if !isStillAtIt(runtime) { rootHasEnded(runtime, process, leaving: tree) }
    }
  }

  private func isStillAtIt(_ runtime: WorkerRuntime) -> Bool {
    runtime.sleep?.isActing == true || runtime.endings > 0 || runtime.isBeingCleared
  }

  /// What is under way calls `rootHasEnded` when it has ended; where that is lost, this does.
  private func lookAgainAtEnd(of runtime: WorkerRuntime, _ process: WorkerProcess) {
    guard runtime.endLook == nil else { return }
    runtime.endLook = loop.after(.seconds(1)) { [unowned self] in
      runtime.endLook = nil
      if runtime.process === process { rootHasEnded(runtime) }
    }
  }

  private func rootHasEnded(
    _ runtime: WorkerRuntime, _ process: WorkerProcess, leaving tree: ProcessTree?
  ) {
    // Nobody who could have children is left of an empty tree.
    let left = tree?.pids ?? [process.identity.pid]
    if !left.isEmpty, mayStillSave(runtime) {
      loop.after(.milliseconds(10)) { [unowned self] in
        if runtime.process === process, !isStillAtIt(runtime) { rootHasEnded(runtime) }
      }
      return
    }

    if runtime.external != nil { return externals.externalRootHasEnded(runtime) }
    runtime.isBeingCleared = true
    // First: until it is reaped nobody else can get its number, by which the others are found.
    endWhatIsLeft(of: runtime, process, left.filter { $0 != process.identity.pid }.count, tries: 1)
  }

  /// On another thread: a worker that forks faster than it can be ended must not hold up the others.
  private func endWhatIsLeft(
    of runtime: WorkerRuntime, _ process: WorkerProcess, _ others: Int, tries: Int
  ) {
    let (id, killing) = (runtime.id, process.killing)
    let strays = Strays(
      root: process.identity, mark: mark(of: id), notify: runtime.conversation?.notifyPath)
    let moment = EventLoop.now
    runtime.clearingSince = moment
    killers.submit(about: id.name, isUrgent: killing.cgroup != nil) { [mailbox] in
      let deadline = Deadline(in: .seconds(5))
      let failure = Self.failure { try killing.perform(until: deadline) }
      let found = killing.cgroup == nil ? strays.kill(until: deadline) : nil
      mailbox.post { daemon in
        guard let runtime = daemon.workers[id], runtime.process?.identity == killing.root,
          runtime.clearingSince == moment
        else { return }
        daemon.isCleared(runtime, others, found ?? (0, nil), failure, tries: tries)
      }
    }
    // A process may keep us from reading what it is.
    loop.after(Self.clearingPatience) { [unowned self] in
      guard runtime.process === process, runtime.clearingSince == moment else { return }
      isCleared(runtime, others, (0, nil), "what is left of it can't be looked at", tries: .max)
    }
  }

  private static let clearingPatience = Duration.seconds(15)
  private static let maxTries = 6

  private func isCleared(
    _ runtime: WorkerRuntime, _ others: Int, _ strays: (killed: Int, failure: String?),
    _ failure: String?, tries: Int
  ) {
    guard let process = runtime.process else { return }
    runtime.clearingSince = nil
    if let failure = failure ?? strays.failure {
      log(.warning, "\(runtime.id): not all of it could be killed: \(failure)")
      if tries < Self.maxTries {
        let pause = Duration.seconds(Int64(1) << Int64(tries - 1))
        log(.warning, "\(runtime.id): trying again in \(pause.spoken)")
        loop.after(pause) { [unowned self] in
          guard runtime.process === process else { return }
          endWhatIsLeft(of: runtime, process, others, tries: tries + 1)
        }
        return
      }
    }
    let others = others + strays.killed
    if others > 0, isAlive(runtime.id), engine.state(of: runtime.id) != .terminating {
      log(
        .warning,
        "\(runtime.id): its first process has ended while \(others) more ran, which are ended with "
          + "it; if it puts itself into the background, start it with its option against that")
    }
    let exit = (try? process.reap()) ?? .unknown
    let status = OOMWatch.status(exit, of: runtime)
    if status == .outOfMemory { keepReport(ofKernelKill: runtime) }
    runtime.isReaped = true
    restarts.note(leftBehind: others, by: runtime.id)
    hibernation.forget(runtime.id.name)
    let (id, identity, cgroup) = (runtime.id, process.identity, process.cgroup)
    // The worker is gone when all of it is, and its group can be used again.
    mechanics.submit(about: id.name) { [mailbox] in
      let failure = cgroup.flatMap { group in
        Self.failure { try group.remove(until: Deadline(in: .seconds(5))) }
      }
      mailbox.post { daemon in
        if let failure { daemon.log(.warning, "\(id): \(failure)") }
        daemon.readLastWords(id, identity, status)
      }
    }
  }

  /// A shell that was asked to end does so at once. Whom it leaves behind has been asked as well, and
  /// has the rest of the grace to do it.
  private func mayStillSave(_ runtime: WorkerRuntime) -> Bool {
    engine.state(of: runtime.id) == .terminating && !runtime.isKilled
  }

  /// The end is reported with them, or without them if the log's file system doesn't answer.
  private func readLastWords(
    _ id: WorkerID, _ identity: ProcessIdentity, _ status: ExitStatus
  ) {
    guard let process = workers[id]?.process, process.identity == identity else { return }
    guard let words = process.lastWordsReader else { return isGone(id, identity, status, nil) }
    jobs.run(about: "log of \(id)", within: .seconds(1)) {
      words.read()
    } then: { [unowned self] outcome in
      var last: String?
      if case .done(let text) = outcome { last = text }
      isGone(id, identity, status, last)
    }
  }

  private func isGone(
    _ id: WorkerID, _ identity: ProcessIdentity, _ status: ExitStatus, _ lastWords: String?
  ) {
    guard let runtime = workers[id], runtime.process?.identity == identity else { return }
    restarts.note(footprint: engine.footprint(of: id), lastWords: lastWords, of: id)
    clearAway(runtime)
    records.remove(id.name)
    wrapped?.end = WrapEnd(status)
    driver.send(.exited(id, status))
    offer(runtime)
    // No longer declared: it was only waited for.
    if engine.state(of: id) == nil { removeWorker(id) }
    if !runtime.isDeclared { forgetOldRuns(besides: id) }
  }

  /// Ended workers of `run` that are still shown.
  private static let maxEndedRuns = 100

  /// A script may `run` under new names for years.
  func forgetOldRuns(besides latest: WorkerID) {
    endedRuns.removeAll { $0 == latest }
    endedRuns.append(latest)
    guard endedRuns.count > Self.maxEndedRuns else { return }
    let id = endedRuns.removeFirst()
    // It may have been run again since; then it comes back at its next end.
    guard workers[id]?.isDeclared == false, !isAlive(id) else { return }
    removeWorker(id)
    driver.send(.removed(id))
  }

  /// Nothing of a worker that has ended stays: sockets, image, process.
  func clearAway(_ runtime: WorkerRuntime) {
    if let process = runtime.process, let token = runtime.exitWatch {
      loop.unwatch(process.pidfd, token)
    }
    let before = runtime.profile
    runtime.conversation?.end()
    snapshots.remove(runtime.id.name)
    removeImages(of: runtime)
    stopListening(for: runtime)
    runtime.traffic = nil
    runtime.shed?.end()
    runtime.shed = nil
    runtime.sleep?.end()
    runtime.sleep = nil
    runtime.process = nil
    runtime.exitWatch = nil
    runtime.conversation = nil
    runtime.readiness = nil
    endReadinessProbe(runtime)
    runtime.endRun()
    if runtime.profile != before { tellChannels(of: runtime) }
  }

  /// A worker has opened or closed a channel on which it can be asked, or has answered for the first time.
  func tellChannels(of runtime: WorkerRuntime) {
    let profile = runtime.profile
    driver.send(
      .channelsChanged(runtime.id, canShed: profile.canShed, canAnswer: profile.canAnswer))
  }

  /// Orphans of workers become our children (PR_SET_CHILD_SUBREAPER) and must be waited for. Never
  /// with waitpid(-1): that would take workers' and tracees' reports away from those who wait for
  /// them.
  func reapOrphans() {
    let known = Set(
      workers.values.flatMap { [$0.process?.identity.pid, $0.launching?.pid].compactMap(\.self) })
    let children = Linux.children(of: getpid())
    // One of them may be a worker that is being started, whose end its owner has to learn of.
    if ForkedChild.anyIsUnclaimed { return reapOrphansLater() }
    for pid in children {
      guard !known.contains(pid), let stat = try? ProcessStat.read(pid), stat.isEnded,
        !isOurOwn(pid)
      else { continue }
      var status: Int32 = 0
      waitpid(pid, &status, WNOHANG)
    }
  }

  private func reapOrphansLater() {
    guard orphanTimer == nil else { return }
    orphanTimer = loop.after(.milliseconds(50)) { [unowned self] in
      orphanTimer = nil
      reapOrphans()
    }
  }

  private func isOurOwn(_ pid: Int32) -> Bool {
    workers.values.contains { $0.shed?.commandPid == pid }
      || questions.values.contains { $0.runner.commandPid == pid }
      || ProcessRemover.shared.holds(pid)
  }
}

extension ExitStatus {
  init(_ exit: WorkerExit) {
    self =
      switch exit {
      case .exited(let code): .exited(code)
      case .signaled(let signal): .signaled(signal)
      case .unknown: .unknown
      }
  }
}

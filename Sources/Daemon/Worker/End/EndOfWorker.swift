import CLinux
import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

/// What a worker's `WorkerEnding` gets of the daemon, for one root process.
final class EndOfWorker: EndMechanics, EndHost {
  private let worker: WorkerHandle
  private let process: WorkerProcess
  private let ends: WorkerEnds

  private static let patience = Duration.seconds(5)
  private static let patienceForStrays = Duration.seconds(1)
  private static let patienceForLog = Duration.seconds(1)
  /// For `dormouse report`.
  private static let keptLines = 5

  init(worker: WorkerHandle, process: WorkerProcess, ends: WorkerEnds) {
    self.worker = worker
    self.process = process
    self.ends = ends
  }

  private var id: WorkerID { worker.id }
  private var runtime: WorkerUnit? { worker.runtime }
  private var services: Services { ends.services }

  // MARK: mechanics

  var hasGroup: Bool { process.cgroup != nil }

  func ask(by signal: Int32) {
    services.mechanics.submit(about: id.name, isUrgent: true, asking(by: signal))
  }

  private func asking(by signal: Int32) -> @Sendable () -> Void {
    let (root, session, cgroup) = (process.identity, process.session, process.cgroup)
    let pidfd = process.pidfd
    return {
      // Its processes may be others by then.
      do throws(SystemCallError) {
        try ProcessTree.discover(root: root, session: session, cgroup: cgroup).signalAll(signal)
      } catch {
        // The held descriptor reaches the root at least. What isn't reached is killed when the grace is over.
        _ = clinux_pidfd_send_signal(pidfd.raw, signal)
      }
    }
  }

  func wake(askingBy signal: Int32?, then: @escaping (String?) -> Void) {
    guard let target = runtime?.target() else { return }
    let done = services.loopReturn.callback(then)
    let ask = signal.map(asking)
    services.mechanics.submit(about: id.name, isUrgent: true) {
      ask?()
      done(failureText { try target.wake(mastersLast: false) })
    }
  }

  func kill(then: @escaping (String?) -> Void) {
    runtime?.run.stopCommand?.cancel()
    let (name, killing, hibernation) = (id.name, process.killing, services.hibernation)
    let done = services.loopReturn.callback(then)
    services.killers.submit(about: name, isUrgent: hasGroup) {
      let failure = failureText { try killing.perform(until: Deadline(in: Self.patience)) }
      // Not before: a process that is released without its memory must be dying.
      hibernation.forget(name)
      done(failure)
    }
  }

  func lookForWhatIsLeft(then: @escaping (WhatIsLeft) -> Void) {
    ends.senses.scanner.withTree(of: process) { [process] tree in
      // An empty tree has no process that could have children.
      guard let pids = tree?.pids else { return then(.unknown) }
      let root = process.identity.pid
      then(WhatIsLeft(isEmpty: pids.isEmpty, others: pids.count { $0 != root }))
    }
  }

  func clear(then: @escaping (Clearing) -> Void) {
    let killing = process.killing
    let strays = Strays(
      root: process.identity, mark: ends.launchPlanner.mark(of: id),
      notify: runtime?.conversation?.notifyPath, processes: services.processes)
    let done = services.loopReturn.callback(then)
    services.killers.submit(about: id.name, isUrgent: hasGroup) {
      let failure = failureText { try killing.perform(until: Deadline(in: Self.patience)) }
      // The tree may have used all of its time.
      let found =
        killing.cgroup == nil
        ? strays.kill(within: Self.patienceForStrays) : (killed: 0, failure: nil)
      done(Clearing(strays: found.killed, failure: failure ?? found.failure))
    }
  }

  func reap() -> ExitStatus {
    // A process that can't be waited for isn't the daemon's child, and its status isn't known.
    let exit = (try? process.reap()) ?? .unknown
    guard let runtime else { return ExitStatus(exit) }
    let status = ends.senses.kernelKills.status(exit, of: runtime)
    if status == .outOfMemory { ends.senses.kernelKills.keepReport(ofKernelKill: runtime) }
    return status
  }

  func removeGroup(then: @escaping (String?) -> Void) {
    let cgroup = process.cgroup
    let done = services.loopReturn.callback(then)
    services.mechanics.submit(about: id.name) {
      done(
        cgroup.flatMap { group in
          failureText { try group.remove(until: Deadline(in: Self.patience)) }
        })
    }
  }

  func readLastLines(then: @escaping ([String]?) -> Void) {
    guard let words = process.lastWordsReader else { return then(nil) }
    services.jobs.run(about: "log of \(id)", within: Self.patienceForLog) {
      words.readLines(upTo: Self.keptLines)
    } then: { outcome in
      if case .done(let lines) = outcome { then(lines) } else { then(nil) }
    }
  }

  // MARK: host

  var stopSignal: Int32 { runtime?.configuration.stopSignal ?? SIGTERM }
  var isMemoryUnverified: Bool { runtime?.sleep?.isMemoryUnverified == true }
  var isActedOn: Bool { runtime?.sleep?.isActing == true }
  var isTerminating: Bool { worker.state == .terminating }
  var isExternal: Bool { runtime?.external != nil }
  var isUnexpected: Bool { ends.requests.isAlive(id) && !isTerminating }

  func stopListening() { runtime?.wakeWatch?.stop() }

  func willBeAsked() { runtime?.conversation?.offers.dropFound() }

  func runStopCommand(then ask: @escaping () -> Void) -> Bool {
    guard let runtime, runtime.external == nil, runtime.run.stopCommand == nil,
      let arguments = runtime.configuration.stopCommand
    else { return false }
    // The worker has the rest of the grace to follow its stop signal.
    let limit = runtime.configuration.policy.terminate.grace / 2
    worker.log(.info, "stop command: \(arguments.joined(separator: " "))")
    runtime.run.stopCommand = StopCommand(
      arguments, of: process, within: limit, loop: services.loop, log: worker.log, then: ask)
    return true
  }

  func announceEnd(then ask: @escaping () -> Void) -> Bool {
    guard let runtime, let conversation = runtime.conversation else { return false }
    let grace = runtime.configuration.policy.terminate.grace
    return conversation.lifecycle.willTerminate(within: grace, then: ask)
  }

  func rootHasEnded() {
    guard let runtime else { return }
    runtime.wakeWatch?.stop()
    if runtime.configuration.fdstore > 0 {
      runtime.conversation?.receiveNotifications(limit: 64)
    }
    runtime.traffic = nil
    if let token = runtime.exitWatch {
      services.loop.unwatch(process.pidfd, token)
      runtime.exitWatch = nil
    }
  }

  func externalRootHasEnded() {
    guard let runtime else { return }
    ends.externalRootHasEnded(runtime)
    // Another process represents the worker now, and has an end of its own.
    if runtime.process != nil { runtime.ending = nil }
  }

  func isReaped(_ status: ExitStatus, leavingBehind others: Int) {
    ends.restarts.record(leftBehind: others, by: id)
    services.hibernation.forget(id.name)
  }

  func isGone(_ status: ExitStatus, lastLines: [String]?) {
    guard let runtime, ends.workers[id] === runtime else { return }
    ends.restarts.record(
      footprint: ends.driver.state.footprint(of: id), lastWords: lastLines?.last, of: id)
    ends.keepLastLines(id, lastLines)
    ends.clearAway(runtime)
    services.records.remove(id.name)
    ends.program?.hasEnded(status)
    worker.send(.exited(id, status))
    ends.listening.offer(runtime)
    // It isn't declared any more, and only its end was waited for.
    if worker.state == nil { ends.supervision.removeWorker(id) }
    if !runtime.isDeclared { ends.endedRuns.forgetOldRuns(after: id) }
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) { worker.log(priority, text) }
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

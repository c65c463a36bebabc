import CLinux
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

/// The real `WorkerProcesses`: the threads of `mechanics` send signals and wake workers, those of
/// `killers` end them.
struct KernelWorkerProcesses: WorkerProcesses {
  let services: Services
  let state: StateDirectory
  let scanner: ProcessScanner

  private static let timeout = Duration.seconds(5)
  private static let escapedTimeout = Duration.seconds(1)
  private static let logTimeout = Duration.seconds(1)
  /// The number of lines that `dormouse report` shows.
  private static let keptLines = 5

  func openMemory(
    _ refresh: MemoryRefresh, of name: String, then: @escaping (MemoryRefresh.Outcome) -> Void
  ) {
    let done = services.loopReturn.callback { (opened: MemoryRefresh.Outcome?) in
      if let opened { then(opened) }
    }
    // Memory that can't be opened now is opened at the next attempt.
    services.mechanics.submit(about: name) { done(try? refresh.perform()) }
  }

  func ask(_ process: WorkerProcess, of name: String, by signal: Int32) {
    services.mechanics.submit(about: name, isUrgent: true, asking(process, by: signal))
  }

  private func asking(_ process: WorkerProcess, by signal: Int32) -> @Sendable () -> Void {
    let (root, session, cgroup) = (process.identity, process.session, process.cgroup)
    let pidfd = process.pidfd
    return {
      // The worker may have other processes by then, so they are discovered on that thread. Those
      // that aren't found or can't be signalled are killed when the grace is over.
      let tree = try? ProcessTree.discover(root: root, session: session, cgroup: cgroup)
      // The pidfd reaches the root process even if that was moved to another cgroup. It gets the
      // signal once: many programs end at once at a second one.
      _ = clinux_pidfd_send_signal(pidfd.raw, signal)
      let others = tree?.processes.filter { $0.identity != root } ?? []
      // One that has ended meanwhile needs no signal.
      _ = try? ProcessTree(processes: others).signalAll(signal)
    }
  }

  func wake(
    _ target: HibernationTarget, _ process: WorkerProcess, missing: MissingBytes?,
    askingBy signal: Int32?, then: @escaping (String?) -> Void
  ) {
    let done = services.loopReturn.callback(then)
    let ask = signal.map { asking(process, by: $0) }
    let image = state.image(of: target.name)
    let hibernation = missing?.isTrimmed == true ? services.hibernation : nil
    services.mechanics.submit(about: target.name, isUrgent: true) {
      ask?()
      done(
        failureText {
          try hibernation?.serveTrimmed(target, image: image)
          try target.wake(mastersLast: false)
        })
    }
  }

  func kill(_ process: WorkerProcess, of name: String, then: @escaping (String?) -> Void) {
    let (killing, hibernation) = (process.killing, services.hibernation)
    let done = services.loopReturn.callback(then)
    services.killers.submit(about: name, isUrgent: process.cgroup != nil) {
      let failure = failureText { try killing.perform(until: Deadline(in: Self.timeout)) }
      // The hibernator forgets the worker only now: a process that is released without its memory
      // must be dying.
      hibernation.forget(name)
      done(failure)
    }
  }

  func findRemainingProcesses(
    of process: WorkerProcess, then: @escaping (RemainingProcesses) -> Void
  ) {
    scanner.withTree(of: process) { [process] tree in
      // An empty tree has no process that could have children.
      guard let pids = tree?.pids else { return then(.unknown) }
      let root = process.identity.pid
      then(RemainingProcesses(isEmpty: pids.isEmpty, others: pids.count { $0 != root }))
    }
  }

  func clear(
    _ process: WorkerProcess, of name: String, mark: String, notify: String?,
    then: @escaping (Clearing) -> Void
  ) {
    let killing = process.killing
    let escaped = EscapedDescendants(
      root: process.identity, mark: mark, notify: notify, cgroup: process.cgroup,
      processes: services.processes)
    let done = services.loopReturn.callback(then)
    let killers = services.killers
    killers.submit(about: name, isUrgent: process.cgroup != nil) {
      let failure = failureText { try killing.perform(until: Deadline(in: Self.timeout)) }
      // The escaped processes have a time limit of their own, since the tree may have used all of
      // its limit. They may also have been moved out of the worker's cgroup. To read their
      // environment may take long.
      killers.submit(about: name) {
        var clearing = escaped.kill(within: Self.escapedTimeout)
        clearing.failure = failure ?? clearing.failure
        done(clearing)
      }
    }
  }

  func forget(_ name: String) { services.hibernation.forget(name) }

  func reap(_ process: WorkerProcess, of name: String) -> WorkerExit {
    defer { forget(name) }
    // A process that can't be waited for isn't the daemon's child, and its status isn't known.
    return (try? process.reap()) ?? .unknown
  }

  func removeGroup(
    of process: WorkerProcess, _ name: String, then: @escaping (String?) -> Void
  ) {
    let cgroup = process.cgroup
    let done = services.loopReturn.callback(then)
    services.mechanics.submit(about: name) {
      done(
        cgroup.flatMap { group in
          failureText { try group.remove(until: Deadline(in: Self.timeout)) }
        })
    }
  }

  func readLastLines(
    of process: WorkerProcess, _ name: String, then: @escaping ([String]?) -> Void
  ) {
    guard let reader = process.lastLogLines else { return then(nil) }
    services.jobs.run(about: "log of \(name)", within: Self.logTimeout) {
      reader.readLines(upTo: Self.keptLines)
    } then: { outcome in
      if case .done(let lines) = outcome { then(lines) } else { then(nil) }
    }
  }
}

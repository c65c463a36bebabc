import CLinux
import Control
import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// Runs the caller's program as the only worker (`DaemonRole.program`), instead of `Daemon.run`.
/// Fewer of the daemon's components are started: there is no journal, no worker of an earlier
/// daemon, no restart and no schedule.
package struct ProgramRun {
  let id: WorkerID
  let shared: SharedComponents
  let components: WorkerComponents
  let control: ControlService
  let orphans: OrphanReaper
  let ending: DaemonEnd

  private var services: Services { shared.services }
  private var driver: EngineDriver { shared.driver }
  private var unit: WorkerUnit? { shared.workers[id] }

  // MARK: start and end

  /// Prepares the process of the wrapper. Call this before anything is started, and before the
  /// process has a second thread.
  package static func prepareProcess() {
    clinux_keep_heap_small(1)
    // Processes that lose their parent stay below this process. They are found without a scan of
    // all of /proc.
    clinux_become_subreaper()
    clinux_raise_descriptor_limit()
    DaemonOOMScore().useForWorkers()
    clinux_stay_out_of_core_files()
    DaemonProcess.ignoreWriteSignals()
  }

  /// Starts the program.
  package func begin() {
    do throws(StartError) { try shared.control.open(control) } catch {
      log(.notice, "can't open a control socket: \(error)")
    }
    shared.pressure.follow(driver.state.policy)
    for worker in shared.configuration.current.workers { components.declared.addDeclared(worker) }
    shared.requests.request(.start, id) { _ in }
    components.senses.sampling.sampleRegularly()
  }

  /// Runs the event loop until the program has ended, or until `hasEnded` returns true.
  package func turn(until hasEnded: () -> Bool) {
    do throws(SystemCallError) {
      while !hasEnded(), !ending.hasEnded {
        try services.loop.turn(until: driver.nextDeadline)
        driver.passDeadlines()
      }
    } catch { log(.error, "\(error)") }
    services.records.drain()
    services.disk.drain(within: .seconds(2))
    shared.control.close()
  }

  /// Removes what the run has left. Called at the end, even if the run never began.
  package func cleanUp() {
    shared.cgroups?.remove()
    services.log.drain()
  }

  // MARK: state

  /// The program's state; nil: the engine doesn't know the program.
  package var state: WorkerState? { driver.state.state(of: id) }
  package var footprint: ByteCount { driver.state.footprint(of: id) }
  /// The part of the footprint that is in swap, or in the image of a trim.
  package var swapped: ByteCount { driver.state.swapped(of: id) }
  /// The program's processes; nil: it has none.
  package var process: WorkerProcess? { unit?.process }
  /// The root process has been reaped. Its pid may be that of another process by now.
  package var isReaped: Bool { unit?.isReaped ?? true }
  /// An operation on the program is running on another thread.
  package var isBusy: Bool { unit?.isBusy == true }

  /// Reports the program's current state, as `status` shows it.
  package func report(then: @escaping (WorkerReport) -> Void) {
    let request = ControlRequest(id: 0, verb: .status, worker: id.name)
    components.senses.scanner.withRecentScan(of: shared.workers.values) { [control] scan in
      if let report = control.status.report(request, scan).workers?.first { then(report) }
    }
  }

  // MARK: actions

  package func wake(_ reason: String) { driver.send(.wakeNeeded(id, reason)) }

  /// Counts the program as used now.
  package func recordUse() {
    unit?.sample.sign = nil
    driver.send(.activity(id))
  }

  /// Ends the program at once with SIGKILL, also if it is suspended or hibernated. Its descendants
  /// end with it, as at any end.
  package func kill(_ reason: String) {
    log(.notice, "\(id) is killed: \(reason)")
    // A process that has ended already needs no signal.
    try? process?.signal(SIGKILL)
  }

  /// Ends the program as a request to stop it does: it is woken if it sleeps, it gets its stop
  /// signal, and SIGKILL follows if it doesn't end.
  package func stop(_ reason: String) {
    log(.notice, "\(id) is stopped: \(reason)")
    shared.requests.request(.stop, id) { _ in }
  }

  /// From now on the program is sampled as often as a running worker.
  package func sampleAgain() { if let unit { components.senses.sampling.sampleAtOnce(unit) } }

  /// Reaps children that have ended: traced processes and orphans.
  package func reapChildren() {
    services.hibernation.reapChildren()
    orphans.reapOrphans()
  }

  // MARK: services for the wrapper

  package var loop: any Timers & DescriptorWatches { services.loop }

  private func log(_ priority: DaemonLog.Priority, _ text: String) { services.log(priority, text) }

  /// Connects to a socket on another thread, since its path may be on a file system that doesn't
  /// answer. Calls back with nil if nothing listens there, or after 5 s.
  package func connect(to path: String, then: @escaping (Descriptor?) -> Void) {
    services.jobs.run(about: "daemon at \(path)", within: .seconds(5)) {
      // Usually no daemon runs, which isn't a failure.
      try? UnixSocket.connected(to: path, .stream)
    } then: {
      then($0.value ?? nil)
    }
  }
}

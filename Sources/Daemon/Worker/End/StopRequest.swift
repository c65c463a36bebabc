import Lifecycle
import Policy
import Supervision

// How a worker is asked to end.

extension WorkerEnding {
  /// Asks all of it to end (as systemd does by default: a shell that is asked alone would leave its
  /// children behind), and lets it run for that.
  ///
  /// - Parameter signal: instead of its stop signal. Its end isn't announced over `DORMOUSE_WORKER_SOCKET` then.
  func terminate(by signal: Int32? = nil) {
    guard step == .runs, let worker = handle.worker else { return }
    hasBegun = true
    // Nothing wakes it any more.
    worker.wakeWatch?.stop()
    if worker.sleep?.isMemoryUnverified == true { return kill() }
    worker.conversation?.offers.dropFound()
    if signal == nil, runStopCommand(of: worker) {
      // The command needs a worker that runs.
      return wake(worker, askingBy: nil)
    }
    ask(by: signal)
  }

  /// The stop signal follows when the command has ended, or has had its time.
  ///
  /// - Returns: false: it has none, or it has begun already.
  private func runStopCommand(of worker: WorkerUnit) -> Bool {
    guard worker.external == nil, worker.run.stopCommand == nil,
      let arguments = worker.configuration.stopCommand
    else { return false }
    handle.log(.info, "stop command: \(arguments.joined(separator: " "))")
    worker.run.stopCommand = StopCommand(
      arguments, of: process,
      // The worker has the rest of the grace to follow its stop signal.
      within: worker.configuration.policy.terminate.grace / 2, loop: ends.loop, log: handle.log
    ) { [weak self] in self?.ask(by: nil) }
    return true
  }

  private func ask(by signal: Int32?) {
    guard step == .runs, let worker = handle.worker else { return }
    let asked = signal ?? worker.configuration.stopSignal
    let isAnnounced = signal == nil && announce(to: worker, askingBy: asked)
    // The signal is pending while the worker is frozen or stopped, and delivered when it continues.
    wake(worker, askingBy: isAnnounced ? nil : asked)
  }

  /// Over `DORMOUSE_WORKER_SOCKET`: it is asked when it knows. False: it has no connection there.
  private func announce(to worker: WorkerUnit, askingBy signal: Int32) -> Bool {
    guard let lifecycle = worker.conversation?.lifecycle else { return false }
    let grace = worker.configuration.policy.terminate.grace
    return lifecycle.willTerminate(within: grace) { [processes, process, id] in
      processes.ask(process, of: id.name, by: signal)
    }
  }

  private func wake(_ worker: WorkerUnit, askingBy signal: Int32?) {
    guard let target = worker.target() else { return }
    processes.wake(target, process, askingBy: signal) { [handle] failure in
      if let failure { handle.log(.warning, "can't be woken before its end: \(failure)") }
    }
  }
}

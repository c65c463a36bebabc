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
    guard step == .runs, let runtime = worker.runtime else { return }
    hasBegun = true
    // Nothing wakes it any more.
    runtime.wakeWatch?.stop()
    if runtime.sleep?.isMemoryUnverified == true { return kill() }
    runtime.conversation?.offers.dropFound()
    if signal == nil, runStopCommand(of: runtime) {
      // The command needs a worker that runs.
      return wake(runtime, askingBy: nil)
    }
    ask(by: signal)
  }

  /// The stop signal follows when the command has ended, or has had its time.
  ///
  /// - Returns: false: it has none, or it has begun already.
  private func runStopCommand(of runtime: WorkerUnit) -> Bool {
    guard runtime.external == nil, runtime.run.stopCommand == nil,
      let arguments = runtime.configuration.stopCommand
    else { return false }
    worker.log(.info, "stop command: \(arguments.joined(separator: " "))")
    runtime.run.stopCommand = StopCommand(
      arguments, of: process,
      // The worker has the rest of the grace to follow its stop signal.
      within: runtime.configuration.policy.terminate.grace / 2, loop: ends.loop, log: worker.log
    ) { [weak self] in self?.ask(by: nil) }
    return true
  }

  private func ask(by signal: Int32?) {
    guard step == .runs, let runtime = worker.runtime else { return }
    let asked = signal ?? runtime.configuration.stopSignal
    let isAnnounced = signal == nil && announce(to: runtime, askingBy: asked)
    // The signal is pending while the worker is frozen or stopped, and delivered when it continues.
    wake(runtime, askingBy: isAnnounced ? nil : asked)
  }

  /// Over `DORMOUSE_WORKER_SOCKET`: it is asked when it knows. False: it has no connection there.
  private func announce(to runtime: WorkerUnit, askingBy signal: Int32) -> Bool {
    guard let lifecycle = runtime.conversation?.lifecycle else { return false }
    let grace = runtime.configuration.policy.terminate.grace
    return lifecycle.willTerminate(within: grace) { [processes, process, id] in
      processes.ask(process, of: id.name, by: signal)
    }
  }

  private func wake(_ runtime: WorkerUnit, askingBy signal: Int32?) {
    guard let target = runtime.target() else { return }
    processes.wake(target, process, askingBy: signal) { [worker] failure in
      if let failure { worker.log(.warning, "can't be woken before its end: \(failure)") }
    }
  }
}

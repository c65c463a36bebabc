import Lifecycle
import Policy
import Supervision

// How a worker is asked to end.

extension WorkerEnding {
  /// Asks all processes of the worker to end, and lets the worker run for that. systemd does the
  /// same by default: a shell that is asked alone would leave its children behind.
  ///
  /// - Parameter signal: sent instead of the worker's stop signal. The end isn't announced over
  ///   `DORMOUSE_WORKER_SOCKET` then.
  func terminate(by signal: Int32? = nil) {
    guard step == .running, let worker = handle.worker else { return }
    hasBegun = true
    // No input wakes the worker any more.
    worker.wakeWatch?.stop()
    if worker.sleep?.isMemoryUnverified == true { return kill() }
    worker.conversation?.offers.dropRestored()
    if signal == nil, runStopCommand(of: worker) {
      // The command needs a worker that runs.
      return wake(worker, askingBy: nil)
    }
    ask(by: signal)
  }

  /// Starts the worker's stop command, which runs beside the worker. The stop signal follows when
  /// the command has ended or its time limit is reached.
  ///
  /// - Returns: false if the worker has no stop command, or if that has started already.
  private func runStopCommand(of worker: WorkerUnit) -> Bool {
    guard worker.external == nil, !hasStopCommandRun,
      let arguments = worker.configuration.stopCommand
    else { return false }
    handle.log(.info, "stop command: \(arguments.joined(separator: " "))")
    hasStopCommandRun = true
    stopCommand = FollowedProgram(process.runBeside(arguments, as: "stop command"), ends.loop) {
      [weak self] in self?.stopCommandDidEnd()
    }
    // The remaining half of the grace is for the worker to handle its stop signal.
    let limit = worker.configuration.policy.terminate.grace / 2
    stopCommandDeadline.wait(limit) { [weak self] in self?.giveUpStopCommand(after: limit) }
    return true
  }

  private func stopCommandDidEnd() {
    switch stopCommand?.program.phase {
    case .ended(.exited(0))?: break
    case .ended(let exit)?: handle.log(.warning, "its stop command failed: \(exit)")
    case .failed(let error)?: handle.log(.warning, "its stop command did not start: \(error)")
    default: break
    }
    cancelStopCommand()
    ask(by: nil)
  }

  private func giveUpStopCommand(after limit: Duration) {
    if let hang = stopCommand?.program.hang {
      handle.log(.warning, "its stop command did not start: \(hang)")
    }
    handle.log(.warning, "its stop command has not ended within \(limit.text) and is killed")
    cancelStopCommand()
    ask(by: nil)
  }

  /// Kills the stop command if it still runs.
  func cancelStopCommand() {
    stopCommand?.cancel()
    stopCommand = nil
    stopCommandDeadline.cancel()
  }

  private func ask(by signal: Int32?) {
    guard step == .running, let worker = handle.worker else { return }
    let asked = signal ?? worker.configuration.stopSignal
    let isAnnounced = signal == nil && announce(to: worker, askingBy: asked)
    // The signal is pending while the worker is frozen or stopped, and is delivered when it
    // continues.
    wake(worker, askingBy: isAnnounced ? nil : asked)
  }

  /// Announces the end over `DORMOUSE_WORKER_SOCKET`. The signal is sent when the worker has
  /// received that. Returns false if the worker has no connection there.
  private func announce(to worker: WorkerUnit, askingBy signal: Int32) -> Bool {
    guard let conversation = worker.conversation else { return false }
    let grace = worker.configuration.policy.terminate.grace
    // A stop command may have used half of the grace.
    let left = hasStopCommandRun ? grace / 2 : grace
    return conversation.willTerminate(within: left) { [processes, process, id] in
      processes.ask(process, of: id.name, by: signal)
    }
  }

  private func wake(_ worker: WorkerUnit, askingBy signal: Int32?) {
    guard let target = worker.target() else { return }
    processes.wake(target, process, missing: worker.sleep?.missing, askingBy: signal) {
      [handle] failure in
      if let failure { handle.log(.warning, "can't be woken before its end: \(failure)") }
    }
  }
}

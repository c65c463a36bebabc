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

  /// Starts the worker's stop command. The stop signal follows when the command has ended or its
  /// time limit is reached.
  ///
  /// - Returns: false if the worker has no stop command, or if that has started already.
  private func runStopCommand(of worker: WorkerUnit) -> Bool {
    guard worker.external == nil, worker.run.stopCommand == nil,
      let arguments = worker.configuration.stopCommand
    else { return false }
    handle.log(.info, "stop command: \(arguments.joined(separator: " "))")
    worker.run.stopCommand = StopCommand(
      arguments, of: process,
      // The remaining half of the grace is for the worker to handle its stop signal.
      within: worker.configuration.policy.terminate.grace / 2, loop: ends.loop, log: handle.log
    ) { [weak self] in self?.ask(by: nil) }
    return true
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
    return conversation.willTerminate(within: grace) { [processes, process, id] in
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

/// The `stop_command` at one end of a worker. The command runs beside the worker. `then` is called
/// once, when the command has ended or its time limit is reached. Belongs to the loop's thread.
final class StopCommand {
  private let deadline: TimedOperation
  private let log: (DaemonLog.Priority, String) -> Void
  private var program: FollowedProgram?
  private var then: (() -> Void)?

  init(
    _ arguments: [String], of process: WorkerProcess, within limit: Duration,
    loop: any Timers & DescriptorWatches, log: @escaping (DaemonLog.Priority, String) -> Void,
    then: @escaping () -> Void
  ) {
    (self.log, self.then) = (log, then)
    deadline = TimedOperation(loop)
    let program = FollowedProgram(process.runBeside(arguments, as: "stop command"), loop) {
      [weak self] in self?.didEnd()
    }
    self.program = program
    deadline.wait(limit) { [weak self] in self?.reachDeadline(limit) }
  }

  /// The pid of the command, which is a child of the daemon that nothing else may reap.
  var pid: Int32? { program?.program.pid }

  private func didEnd() {
    switch program?.program.phase {
    case .ended(.exited(0))?: break
    case .ended(let exit)?: log(.warning, "its stop command failed: \(exit)")
    case .failed(let error)?: log(.warning, "its stop command did not start: \(error)")
    default: break
    }
    finish()
  }

  private func reachDeadline(_ limit: Duration) {
    if let hang = program?.program.hang { log(.warning, "its stop command did not start: \(hang)") }
    log(.warning, "its stop command has not ended within \(limit.text) and is killed")
    program?.cancel()
    finish()
  }

  private func finish() {
    program = nil
    deadline.cancel()
    let then = then
    self.then = nil
    then?()
  }

  /// Kills the command if it still runs. `then` isn't called.
  func cancel() {
    then = nil
    program?.cancel()
    finish()
  }
}

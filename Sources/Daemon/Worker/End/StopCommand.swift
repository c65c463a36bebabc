import Supervision

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
    program = nil
    deadline.cancel()
  }
}

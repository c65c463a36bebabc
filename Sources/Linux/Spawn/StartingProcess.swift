import CLinux
import Glibc

/// A process between fork and execve. It is a child of this process, but not yet the program. It
/// may hang in any step, because its user can stop it, or because a file system doesn't answer. No
/// function here waits. The owner watches `report` together with a timer, and calls `poll` or
/// `expire`.
public final class StartingProcess {
  private let child: ForkedChild
  /// Nil while the report is awaited.
  private var outcome: StartOutcome?

  public var process: SpawnedProcess { child.process }
  /// A pipe that polls readable when `poll` may return a result.
  public var report: Descriptor { child.report }
  private var request: SpawnRequest { child.request }

  /// Claims a child that another thread has forked, and watches it.
  public init(_ child: ForkedChild) {
    self.child = child
    child.claim()
  }

  /// Forks on this thread, which must live until the child has executed its program.
  public convenience init(_ request: SpawnRequest) throws(SpawnError) {
    self.init(try ForkedChild(request))
  }

  /// Returns the process if it has executed the program by now; nil while that isn't known.
  ///
  /// - Throws: the error if the start failed. Such a process has ended or is ending, and is
  ///   abandoned.
  public func poll() throws(SpawnError) -> SpawnedProcess? {
    if outcome == nil {
      do throws(SystemCallError) {
        outcome = StartOutcome(report: try report.read(upTo: StartOutcome.reportSize))
      } catch {
        if error.code == EAGAIN { return nil }
        outcome = .executed
      }
    }
    return try conclude()
  }

  /// Handles the end of the deadline `time`. A process that hasn't executed the program by now is
  /// killed and abandoned, and the error is thrown.
  public func expire(after time: Duration) throws(SpawnError) -> SpawnedProcess? {
    if let process = try poll() { return process }
    outcome = .hung(step, state)
    return try conclude(after: time)
  }

  /// An error that names the step in which the process is, for a message about a process that isn't
  /// needed any more. It is nil if the outcome is known.
  public func hangError(after time: Duration) -> SpawnError? {
    guard outcome == nil else { return nil }
    return SpawnError(hungIn: step, state, after: time, request: request)
  }

  /// Kills the process without waiting for its end. It is reaped here if it has ended, and
  /// otherwise with the orphans when SIGCHLD reports its end.
  public func abandon() {
    clinux_pidfd_send_signal(process.pidfd.raw, SIGKILL)
    process.reapIfEnded()
  }

  private func conclude(after time: Duration = .zero) throws(SpawnError) -> SpawnedProcess? {
    switch outcome {
    case nil: return nil
    case .executed: return process
    case .failed(let step, let code, let limit):
      abandon()
      throw SpawnError(step: step, code: code, request: request, limit: limit)
    case .hung(let step, let state):
      abandon()
      throw SpawnError(hungIn: step, state, after: time, request: request)
    }
  }

  private var step: SpawnError.Step {
    SpawnError.Step(rawValue: child.step & 0xFF) ?? .session
  }

  private var state: ProcessStat.State? {
    do throws(SystemCallError) { return try ProcessStat.read(process.pid).state } catch {
      return nil
    }
  }
}

extension SpawnedProcess {
  /// Reaps a child that has ended; never waits.
  public func reapIfEnded() {
    var kind: Int32 = 0
    var status: Int32 = 0
    // If this fails, the child still runs or is reaped already. Nothing remains to be done.
    _ = clinux_reap(pidfd.raw, &kind, &status)
  }
}

/// Starts a process in a session of its own, and waits until it has executed the program, for at
/// most `limit`. Don't call it on the event loop's thread, which uses `StartingProcess`. The
/// calling thread must live until this returns.
public func spawn(
  _ request: SpawnRequest, within limit: Duration = .seconds(60)
) throws(SpawnError) -> SpawnedProcess {
  let starting = try StartingProcess(request)
  let deadline = Deadline(in: limit)
  do throws(SpawnError) {
    while true {
      if let process = try starting.poll() { return process }
      let isDue: Bool
      do throws(SystemCallError) {
        isDue = try pollDescriptor(starting.report.raw, for: POLLIN, until: deadline)
      } catch { throw SpawnError(step: .openPidfd, code: error.code, request: request) }
      if !isDue, let process = try starting.expire(after: limit) { return process }
    }
  } catch {
    // Other code that reaps the process may not exist. A process that can't be killed now is left.
    let end = Deadline(in: .seconds(1))
    let process = starting.process
    // An error counts as not ended.
    if (try? pollDescriptor(process.pidfd.raw, for: POLLIN, until: end)) == true {
      process.reapIfEnded()
    }
    throw error
  }
}

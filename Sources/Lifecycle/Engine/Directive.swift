import Policy

/// What the engine wants done. The daemon performs each directive without decisions of its own, and
/// reports its outcome, failures included, as an event. The arrow names that event.
public enum Directive: Codable, Hashable, Sendable {
  /// Start the worker's program. → `launched` or `launchFailed`.
  case launch(WorkerID)
  /// Measure the footprint, then ask the worker to free memory. → `shedAnswered` if it answers. The
  /// engine keeps the deadline.
  case shed(WorkerID, ShedKind, until: Instant)
  /// Stop waiting for an answer, end what may still be running for it, and measure again. →
  /// `shedFinished`.
  case finishShed(WorkerID)
  /// Report to the worker that its background task has run out of time.
  case expireTask(WorkerID, task: String)
  /// Count the file locks that prevent a suspension now. → `fileLocks`.
  case checkSafePoint(WorkerID)
  /// Find out when the worker last sent `WATCHDOG=1`. → `watchdogSeen`.
  case checkWatchdog(WorkerID)
  /// Take the processor from the worker. → `suspended`, `suspendFailed` or
  /// `staysAwake`.
  case suspend(WorkerID)
  /// Move a suspended worker's memory to disk. → `hibernated` or `hibernateFailed`.
  case hibernate(WorkerID)
  /// Let a suspended or hibernated worker run again. → `resumed` or `resumeFailed`.
  case resume(WorkerID)
  /// Thaw the worker, and ask it to end (SIGTERM). → `exited`. The engine keeps the deadline.
  case terminate(WorkerID)
  /// Thaw a worker that doesn't do its work, and end it with SIGABRT, which may leave a core file.
  /// → `exited`. The engine keeps the deadline.
  case abort(WorkerID)
  /// Send SIGKILL to all processes of the worker, thawed or not. → `exited`.
  case kill(WorkerID)
  /// Free the memory that the worker has offered, asleep or awake. → `purged` or `purgeFailed`.
  case purge(WorkerID)
  /// Move the memory that a running worker doesn't use out of RAM. → `trimmed` or `trimFailed`.
  case trim(WorkerID)
  /// Move all memory of a trimmed worker back into RAM. → `filled` or `fillFailed`.
  case fill(WorkerID)
  /// Measure the footprint. → `footprint`.
  case measure(WorkerID)
  /// Find out a worker's real state, because the outcome of `suspend`, `hibernate` or `resume` is
  /// overdue. → `found`.
  case inspect(WorkerID)

  /// The answer to a request, which is fulfilled, refused or failed.
  case answer(Request.ID, Answer)

  // The cases from here on are for the journal and for people. There is nothing to perform.

  /// A worker changed its state.
  case transition(Transition)
  /// The pressure level changed. The text has the measurement.
  case pressureChanged(from: PressureLevel, to: PressureLevel, why: String)
  /// A burst of terminations for lack of memory is over.
  case report(JetsamReport)
  /// A worker missed a deadline of its watchdog, and the policy only wants a report (`on_timeout:
  /// report`). The text says which deadline.
  case watchdogMissed(WorkerID, String)
  /// The text says what would have been done with a worker in shadow mode.
  case wouldHave(WorkerID, String)
  /// The worker will be terminated for lack of memory at the notice's time, unless something
  /// changes (`terminate: ask`).
  case willTerminate(WorkerID, TerminationNotice)
  /// The notice is withdrawn. The text says why.
  case willNotTerminate(WorkerID, String)
  /// The footprint was over a limit for long enough. The text says what follows.
  case overLimit(WorkerID, FootprintExcess, String)
  /// The footprint was larger at each suspension, and didn't fall again. Reported once in a run.
  case leakSuspected(WorkerID, LeakSuspicion)
  /// Memory is short at this level, and all workers that are left to terminate are protected.
  case protectedLeft([WorkerID], PressureLevel)
  /// Memory is short, and no worker is terminated, because that wouldn't help.
  case terminatesNone(VainTermination)

  /// The occasion of a shed request.
  public enum ShedKind: String, Codable, Hashable, Sendable {
    case didEnterBackground, memoryWarning
  }
}

/// The answer to a request.
public struct Answer: Codable, Hashable, Sendable {
  /// The kind of an answer.
  public enum Code: String, Codable, Hashable, Sendable {
    case done, refused, failed, unknownWorker
  }
  public var code: Code
  /// One sentence that says what happened, or why it didn't.
  public var text: String

  public init(_ code: Code, _ text: String) {
    self.code = code
    self.text = text
  }
}

/// A worker's change of state.
public struct Transition: Codable, Hashable, Sendable {
  public var worker: WorkerID
  public var from: WorkerState
  public var to: WorkerState
  public var cause: Cause
  public var at: Instant
}

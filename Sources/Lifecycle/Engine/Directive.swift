import Policy

/// What the engine wants done. The shell performs each without decisions of its own, and reports
/// the outcome, failures too, as events.
public enum Directive: Codable, Hashable, Sendable {
  /// → `launched` or `launchFailed`.
  case launch(WorkerID)
  /// Measure the footprint, then ask the worker to give memory back. → `shedAnswered` if and
  /// when it answers. The engine keeps the deadline.
  case shed(WorkerID, ShedKind, until: Instant)
  /// Stop waiting for an answer, end what may still be running for it, and measure again.
  /// → `shedFinished`.
  case finishShed(WorkerID)
  /// Report to the worker that its background task has run out of time.
  case expireTask(WorkerID, task: String)
  /// Check whether anything prevents a suspension now. → `fileLocks`.
  case checkSafePoint(WorkerID)
  /// Find out when the worker last sent `WATCHDOG=1`. → `watchdogSeen`.
  case checkWatchdog(WorkerID)
  /// → `suspended` or `suspendFailed`.
  case suspend(WorkerID)
  /// For a suspended worker. → `hibernated` or `hibernateFailed`.
  case hibernate(WorkerID)
  /// For a suspended or hibernated worker. → `resumed` or `resumeFailed`.
  case resume(WorkerID)
  /// Thaw the worker, and ask it to end (SIGTERM). → `exited`. The engine keeps the deadline.
  case terminate(WorkerID)
  /// The same with SIGABRT, for a worker that doesn't do its work; it may leave a core. → `exited`.
  case abort(WorkerID)
  /// Send SIGKILL to all processes of the worker, thawed or not. → `exited`.
  case kill(WorkerID)
  /// Take the memory that the worker has offered, asleep or awake. → `purged` or `purgeFailed`.
  case purge(WorkerID)
  /// → `footprint`.
  case measure(WorkerID)
  /// Find out a worker's real state: the outcome of `suspend`, `hibernate` or `resume` is overdue. →
  /// `found`.
  case inspect(WorkerID)

  /// The request is done, or can't be done.
  case answer(Request.ID, Answer)

  // For the journal and for people; nothing to perform.
  case transition(Transition)
  case pressureChanged(from: PressureLevel, to: PressureLevel, why: String)
  case report(JetsamReport)
  /// A watchdog's deadline was missed, and the policy only wants a report (`on_timeout: report`).
  case watchdogMissed(WorkerID, String)
  /// Shadow mode: what would have been done.
  case wouldHave(WorkerID, String)
  /// `terminate: ask`: the worker is terminated for lack of memory at that time, if nothing changes.
  case willTerminate(WorkerID, TerminationNotice)
  /// The notice is withdrawn; the text says why.
  case willNotTerminate(WorkerID, String)
  /// The footprint was over a limit for long enough; the text says what follows.
  case overLimit(WorkerID, FootprintExcess, String)
  /// The footprint was larger at each suspension, and didn't come back. Once in a run.
  case leakSuspected(WorkerID, LeakSuspicion)
  /// Memory is short at this level, and only protected workers are left that could be terminated.
  case protectedLeft([WorkerID], PressureLevel)
  /// Memory is short, and no worker is terminated for it, because that wouldn't help.
  case terminatesNone(VainTermination)

  public enum ShedKind: String, Codable, Hashable, Sendable {
    case didEnterBackground, memoryWarning
  }
}

/// The answer to a request.
public struct Answer: Codable, Hashable, Sendable {
  public enum Code: Codable, Hashable, Sendable { case done, refused, failed, unknownWorker }
  public var code: Code
  /// One sentence: what happened, or why it didn't.
  public var text: String

  public init(_ code: Code, _ text: String) {
    self.code = code
    self.text = text
  }
}

/// One step in a worker's life.
public struct Transition: Codable, Hashable, Sendable {
  public var worker: WorkerID
  public var from: WorkerState
  public var to: WorkerState
  public var cause: Cause
  public var at: Instant

  public init(
    worker: WorkerID, from: WorkerState, to: WorkerState, cause: Cause, at: Instant
  ) {
    self.worker = worker
    self.from = from
    self.to = to
    self.cause = cause
    self.at = at
  }
}

import Policy

/// The reason for a transition, as data. `sentence` is its text for people, `code` its text for
/// programs.
public enum Cause: Codable, Hashable, Sendable {
  /// The worker is declared and has never been started.
  case added
  /// A person or a program requested it.
  case requested(Request.Verb)
  /// The worker was started without a person's request. The verb is that of the request.
  case starting(Request.Occasion, Request.Verb)
  /// The process was started. The worker doesn't announce readiness, or isn't ready yet.
  case launched
  case becameReady
  /// Another worker took the foreground.
  case displaced(by: WorkerID)
  /// The worker was in the foreground without activity for this time.
  case idle(Duration)
  /// The worker shows activity: traffic, output or processor time (`foreground.mode: activity`).
  case active
  /// Suspended because the worker answered, its grace was over, or a deadline passed. The duration
  /// is the time in the background; journals of earlier versions lack it. `isIdle`: that time
  /// counts as idle, because `foreground.mode` is `activity`.
  case graceOver(Duration? = nil, isIdle: Bool? = nil)
  /// Something waits for the sleeping worker. The text names it, such as a connection.
  case wakeNeeded(String)
  /// The worker was suspended for this time (`hibernate.after`). Less than 1 s:
  /// `hibernate.at_once_up_to`.
  case suspendedFor(Duration)
  /// A sleeping worker runs for a moment (`background.heartbeat`), or has done so.
  case heartbeat
  /// A timer or a timed wait of the worker was due. The text says which.
  case timer(String)
  /// Another worker woke, and this one wakes with it (`wake_with`). `forTimer`: the other worker
  /// woke only because one of its own timers was due.
  case wokenWith(WorkerID, forTimer: Bool)
  /// A timer of the worker had woken it, and the worker has nothing more to do.
  case quietAgain
  case pressure(PressureLevel)
  /// The footprint was over a limit in `limits.footprint`.
  case footprint(FootprintExcess)
  /// The worker was launched again after it had been ended for its footprint.
  case restartedForFootprint(FootprintExcess)
  /// The worker missed a deadline. The text says which.
  case watchdog(String)
  case exited(ExitStatus)
  /// A launch, suspension, hibernation or resume failed. The text says why.
  case failed(String)
  case adopted
  /// The worker was given back, running, to the program that supervises it.
  case released
  /// An operation succeeded. Only earlier versions record this cause.
  case succeeded
  /// The worker's leader decided this. The text is the leader's reason; `nil`: the leader gave
  /// none.
  case led(String? = nil)
}

import Control
import Hibernation
import Lifecycle
import Policy

/// An error's text: errors themselves aren't sendable.
struct Refusal: Error {
  let text: String
  /// Why the worker is still stopped though the operation has failed; nil: it is as it was before.
  var stillStopped: String?

  init(text: String, stillStopped: String? = nil) {
    self.text = text
    self.stillStopped = stillStopped
  }
}

/// A hibernation that has succeeded.
struct HibernationOutcome: Sendable {
  var image: ImageOnDisk
  var result: HibernationResult
  /// How it will be resumed, and why, for `status`.
  var restoreMode: CodedText?
}

/// A resume that has succeeded.
struct ResumeOutcome: Sendable {
  /// How much of its memory is still to come; nil: all of it is there.
  var missing: MissingBytes?
  /// Why a requested lazy restore was not done.
  var eagerReason: String?
}

/// A recovery's outcome.
struct RecoveryOutcome: Sendable {
  var result: Result<ResumeOutcome, HibernationError>
  /// The image that is left afterwards.
  var image: ImageOnDisk?
}

/// Operations on one worker's processes and memory, on other threads. `then` is called on the loop, once, and
/// never before the method returns. One at a time: the caller waits for an outcome before it begins another.
protocol SleepMechanics: AnyObject {
  /// An operation is really under way on another thread. False while a caller still waits: its outcome was lost.
  var isUnderWay: Bool { get }

  /// Stops it, and finds its inputs, which `fallsAsleep` has watched. When it fails it runs, unless the refusal says
  /// that it is still stopped.
  ///
  /// - Parameter isRestoring: the rest of its memory is still being restored, and must be there first.
  func suspend(isRestoring: Bool, then: @escaping (Result<Void, Refusal>) -> Void)

  func hibernate(then: @escaping (Result<HibernationOutcome, HibernationError>) -> Void)

  /// Lets it run, when all of its memory is there. `then` gets the reason if that failed.
  func thaw(isStopped: Bool, then: @escaping (_ failure: String?) -> Void)

  func restore(
    from image: ImageOnDisk, then: @escaping (Result<ResumeOutcome, HibernationError>) -> Void)

  /// Verifies its memory, whatever state it is in, writes back what is missing, and lets it run.
  func recover(expecting: ImageExpectation, then: @escaping (RecoveryOutcome) -> Void)

  /// Its state if it rests: `.suspended` or `.hibernated`; nil: anything is in doubt.
  func look(then: @escaping (_ rest: WorkerState?, _ image: ImageOnDisk?) -> Void)
}

/// The functions that a worker's `WorkerSleep` uses.
protocol SleepHost: AnyObject {
  /// It has a process, which hasn't ended.
  var mayBegin: Bool { get }
  /// Its process has ended, and its end is being handled.
  var hasEnded: Bool { get }

  /// Calls back when no answer of the worker is open any more and it knows that it will be suspended; not at
  /// all if it isn't to be suspended any more.
  func whenReadyToSuspend(then: @escaping () -> Void)

  /// It has just been suspended, and the engine hears of it next: from now on its inputs are watched. Not called for
  /// an outcome that came too late.
  func fallsAsleep()

  /// While it sleeps: something watches its inputs, and would wake it.
  var isWatched: Bool { get }

  /// The engine knows that it is suspended.
  func isSuspended()

  /// Called before the engine gets that. `why`: a clause, if it isn't the engine's cause.
  func isAwake(why: String?, fromImage: Bool)

  /// It couldn't be resumed, and sleeps on: the cause of its wake still waits.
  func staysAsleep()

  /// Ends it by SIGKILL, soon.
  func kill()

  /// An operation has ended, and the engine has got its outcome. The process may have ended meanwhile.
  func operationHasEnded()

  func log(_ priority: DaemonLog.Priority, _ text: String)
}

import Lifecycle
import Policy

/// What is left of a worker whose root process has ended.
struct WhatIsLeft: Hashable, Sendable {
  /// None of its processes runs.
  var isEmpty: Bool
  /// How many run in addition to the root process.
  var others: Int

  /// Its processes can't be found.
  static let unknown = WhatIsLeft(isEmpty: false, others: 0)
}

/// The outcome of one try to end the remaining processes.
struct Clearing: Hashable, Sendable {
  /// Processes that had left its tree, and were ended.
  var strays = 0
  /// Why some of it may still run; nil: nothing is left.
  var failure: String?
}

/// Operations on one worker's processes at its end, on other threads. `then` is called on the loop, once. An
/// outcome may also never come: `WorkerEnding` waits for each only for its patience.
protocol EndMechanics: AnyObject {
  /// It has a control group of its own.
  var hasGroup: Bool { get }

  /// Sends a signal to all of its processes, before or after what else is under way about it.
  func ask(by signal: Int32)

  /// Lets it run, so that it can take the signal.
  ///
  /// - Parameter signal: it is sent first; nil: the worker has been asked already.
  func wake(askingBy signal: Int32?, then: @escaping (_ failure: String?) -> Void)

  /// Sends SIGKILL to all of its processes.
  func kill(then: @escaping (_ failure: String?) -> Void)

  /// Finds its processes. `then` may be called before this returns.
  func lookForWhatIsLeft(then: @escaping (WhatIsLeft) -> Void)

  /// Ends all that is left, also processes that have left its tree. The root process isn't reaped yet: its
  /// number, by which the others are found, is still its own.
  func clear(then: @escaping (Clearing) -> Void)

  /// How the root process ended. On the loop: the process has ended, and nothing is waited for.
  func reap() -> ExitStatus

  /// Removes its control group, where it has one, after everything else that was begun about the worker.
  func removeGroup(then: @escaping (_ failure: String?) -> Void)

  /// The last lines of its log; nil: it has no log, or the log can't be read in time.
  func readLastLines(then: @escaping ([String]?) -> Void)
}

/// The functions that a `WorkerEnding` uses, about one run of one worker.
protocol EndHost: AnyObject {
  /// The signal that asks it to end.
  var stopSignal: Int32 { get }
  /// It must never run again.
  var isMemoryUnverified: Bool { get }
  /// Its memory is being worked on. Its processes may not be reaped meanwhile: that could take a stop away from
  /// the thread that traces them.
  var isActedOn: Bool { get }
  /// Its end was requested: processes that the root process leaves behind have the rest of the grace to save
  /// their work.
  var isTerminating: Bool { get }
  /// Another program supervises it: its other processes aren't ended, and it isn't reaped.
  var isExternal: Bool { get }
  /// The engine takes it for running.
  var isUnexpected: Bool { get }

  /// It is to end: nothing wakes it any more.
  func stopListening()
  /// Before it is asked to end.
  func willBeAsked()
  /// Begins its `stop_command`; `ask` is called when that has ended, or has had its time.
  ///
  /// - Returns: false: it has none, or it has begun already.
  func runStopCommand(then ask: @escaping () -> Void) -> Bool
  /// Announces to it over `DORMOUSE_WORKER_SOCKET` that it will be asked to end; `ask` is called when it knows.
  ///
  /// - Returns: false: it has no connection there.
  func announceEnd(then ask: @escaping () -> Void) -> Bool

  /// The root process has ended. Its last messages are read, as long as the sender is known.
  func rootHasEnded()
  /// Called instead of the rest of the sequence, if another program supervises it.
  func externalRootHasEnded()
  /// The root process was waited for.
  ///
  /// - Parameter others: how many more were ended with it.
  func isReaped(_ status: ExitStatus, leavingBehind others: Int)
  /// Nothing of it is left. The engine has to get the end, and the next run may begin.
  func isGone(_ status: ExitStatus, lastLines: [String]?)

  func log(_ priority: DaemonLog.Priority, _ text: String)
}

import Daemon
import Glibc
import Lifecycle
import Linux

/// What `WrappedProgram` needs of the wrapper. Tests hand in their own.
protocol WrappedProgramHost: AnyObject {
  /// In the foreground or background, now.
  var isRunning: Bool { get }
  /// From now on it is measured as often as a running worker.
  func sampleNow()
  /// It may have slept, or have been about to.
  func programRuns()
  func programFallsAsleep()
  func programSleeps()
  /// Reports its state to the daemon, if one runs.
  func reportState()
  /// Its run is over: `end` is set.
  func programHasEnded()
}

/// The one worker of a wrapper, from its launch to its end. Belongs to the loop's thread.
final class WrappedProgram: CallersProgram {
  let id: WorkerID
  let inheritance: Inheritance
  let logPath: String?
  let host: String?
  let directory: String?
  private(set) var wakes = 0
  private(set) var end: WrapEnd?
  private let closeInherited: ([Int32]) -> Void
  private weak var wrapper: (any WrappedProgramHost)?

  /// - Parameter closeInherited: closes the wrapper's own copies of these descriptors, and of standard input
  ///   and output.
  init(
    _ id: WorkerID, _ inheritance: Inheritance, logPath: String?, host: String? = nil,
    directory: String? = nil,
    closeInherited: @escaping ([Int32]) -> Void = WrappedProgram.closeCopies
  ) {
    self.id = id
    self.inheritance = inheritance
    self.logPath = logPath
    self.host = host
    self.directory = directory
    self.closeInherited = closeInherited
  }

  /// The host isn't kept alive.
  func connect(_ host: any WrappedProgramHost) { wrapper = host }

  /// The program has its own copies. With another reader or writer here, a hang-up would not be seen.
  func hasLaunched() { closeInherited(inheritance.descriptors) }

  static func closeCopies(_ descriptors: [Int32]) {
    for number in descriptors { close(number) }
    Standard.occupy([STDIN_FILENO, STDOUT_FILENO])
  }

  func hasEnded(_ status: ExitStatus) { end = WrapEnd(status) }

  func hasChanged(_ transition: Transition) {
    guard let wrapper, transition.worker == id else { return }
    if transition.from == .resuming, transition.to.runs {
      wakes += 1
      wrapper.sampleNow()
    }
    if wrapper.isRunning { wrapper.programRuns() }
    if transition.to == .suspending { wrapper.programFallsAsleep() }
    if transition.to == .suspended || transition.to == .hibernated { wrapper.programSleeps() }
    if !transition.to.isPassing { wrapper.reportState() }
    guard transition.to == .terminated else { return }
    if end == nil {
      end = .notStarted(transition.cause.failure ?? transition.cause.sentence)
    }
    wrapper.programHasEnded()
  }
}

extension WorkerState {
  /// The state ends by itself within a moment.
  fileprivate var isPassing: Bool {
    self == .suspending || self == .hibernating || self == .resuming
  }
}

extension Cause {
  fileprivate var failure: String? {
    if case .failed(let why) = self { return why }
    return nil
  }
}

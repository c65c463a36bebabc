import Daemon
import Glibc
import Lifecycle
import Linux

/// The one worker of a wrapper, from its launch to its end. It belongs to the loop's thread.
final class WrappedProgram: CallersProgram {
  let id: WorkerID
  let inheritance: Inheritance
  let logPath: String?
  let host: String?
  let directory: String?
  private(set) var wakes = 0
  private(set) var end: WrapEnd?
  private let closeInherited: ([Int32]) -> Void
  private weak var wrapper: WrapComposition?

  /// An action of the wrapper after its program's state has changed.
  enum Step {
    /// Measure the program as often as a running worker from now on.
    case sampleNow
    /// The program runs. It may have slept, or have been about to.
    case runs
    case fallsAsleep
    case sleeps
    /// Report the state to the daemon, if one runs.
    case report
    /// The run is over, and `end` is set.
    case end
  }

  /// - Parameter closeInherited: closes the wrapper's own copies of these descriptors, and of
  ///   standard input and output.
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

  /// Connects the wrapper by a weak reference.
  func connect(_ wrapper: WrapComposition) { self.wrapper = wrapper }

  /// Closes the wrapper's copies of the program's descriptors. With another reader or writer here,
  /// a hang-up would not be noticed.
  func didLaunch() { closeInherited(inheritance.descriptors) }

  static func closeCopies(_ descriptors: [Int32]) {
    for number in descriptors { close(number) }
    Standard.occupy([STDIN_FILENO, STDOUT_FILENO])
  }

  func didEnd(_ status: ExitStatus) { end = WrapEnd(status) }

  func didChange(_ transition: Transition) {
    guard let wrapper else { return }
    for step in steps(after: transition, isRunning: wrapper.isRunning) { wrapper.perform(step) }
  }

  /// - Parameter isRunning: whether the program is in the foreground or background now.
  func steps(after transition: Transition, isRunning: Bool) -> [Step] {
    guard transition.worker == id else { return [] }
    var steps: [Step] = []
    if transition.from == .resuming, transition.to.runs {
      wakes += 1
      steps.append(.sampleNow)
    }
    if isRunning { steps.append(.runs) }
    if transition.to == .suspending { steps.append(.fallsAsleep) }
    if transition.to == .suspended || transition.to == .hibernated { steps.append(.sleeps) }
    if !transition.to.isTransit { steps.append(.report) }
    guard transition.to == .terminated else { return steps }
    if end == nil, case .failed(let reason) = transition.cause { end = .notStarted(reason) }
    if end == nil { end = .notStarted(transition.cause.sentence) }
    return steps + [.end]
  }
}

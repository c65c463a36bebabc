import Policy

/// The steps of a launch, in their order.
enum LaunchStep: CaseIterable {
  /// Checks that no process of an earlier instance is left, looks up the user, and creates the
  /// cgroup.
  case terms
  /// Opens the `listen` sockets that have a file.
  case sockets
  /// Creates the sockets between the worker and the daemon.
  case channels
  /// Opens the program and the log, and forks the process.
  case fork
  /// The process executes the program.
  case program
}

/// The steps of one launch of one worker, which are performed on other threads. Tests have a fake.
protocol LaunchSteps: AnyObject {
  /// The steps that this launch needs, in their order.
  var steps: [LaunchStep] { get }
  /// False if the worker has been removed meanwhile.
  var isWanted: Bool { get }
  /// The pid of the new process, a child of this one that only this launch may wait for.
  var pid: Int32? { get }

  /// Performs a step. `then` is called once, on the loop, with the reason if the step has failed.
  /// It is called after `limit` at the latest, and perhaps before this returns. If `undo` has been
  /// called, what a step still creates is removed again.
  func perform(
    _ step: LaunchStep, within limit: Duration, then: @escaping (_ refusal: String?) -> Void)

  /// Removes what the steps have created: process, channels, cgroup. `then` is called once, on the
  /// loop, when the worker can be launched again.
  func undo(then: @escaping () -> Void)
}

/// One launch of one worker: it performs one step after the other, each with a deadline. A launch
/// that fails, or that isn't wanted any more, leaves nothing behind. Belongs to the loop's thread.
final class LaunchAttempt {
  enum Outcome: Equatable {
    case launched
    case failed(String)
    /// The worker has been removed meanwhile.
    case unwanted
  }

  /// The time limit of a step. A file system that is mounted at its first use needs some seconds.
  static let stepTimeout = Duration.seconds(10)
  /// The time limit for the outcome of a step, after which it counts as lost. It is longer than
  /// that of the step.
  static let lossTimeout = Duration.seconds(15)
  /// The time limit of `undo`: it may have to wait for two steps, and for earlier jobs about the
  /// same worker.
  static let undoTimeout = Duration.seconds(30)

  let launch: any LaunchSteps
  private let warn: (String) -> Void
  private let end: (Outcome) -> Void
  private var steps: ArraySlice<LaunchStep>
  private let operation: TimedOperation

  /// - Parameter end: called once.
  init(
    _ launch: any LaunchSteps, _ timers: any Timers,
    warn: @escaping (String) -> Void, then end: @escaping (Outcome) -> Void
  ) {
    self.launch = launch
    self.warn = warn
    self.end = end
    operation = TimedOperation(timers)
    steps = launch.steps[...]
  }

  /// Performs the next step, or ends the launch after the last one.
  func proceed() {
    guard launch.isWanted else { return undo(.unwanted) }
    guard let step = steps.popFirst() else { return end(.launched) }
    let lost: String? = "no outcome of its step `\(step)`"
    operation.begin(within: Self.lossTimeout, orElse: lost) {
      launch.perform(step, within: Self.stepTimeout, then: $0)
    } then: { [unowned self] (refusal: String?) in
      if let refusal { undo(.failed(refusal)) } else { proceed() }
    }
  }

  private func undo(_ outcome: Outcome) {
    operation.begin(within: Self.undoTimeout, orElse: false) { done in
      launch.undo { done(true) }
    } then: { [unowned self] isUndone in
      if !isUndone { warn("can't undo its launch within \(Self.undoTimeout.text)") }
      end(outcome)
    }
  }
}

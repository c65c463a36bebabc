import Lifecycle
import Policy

/// The steps of a launch, in their order.
enum LaunchStep: CaseIterable {
  /// No process of an earlier instance is left; its user is looked up, and its cgroup is made.
  case terms
  /// The files of its `listen` sockets are opened.
  case sockets
  /// The worker's sockets to the daemon are made.
  case channels
  /// Its program and log are opened, and its process is forked.
  case fork
  /// Its process executes the program.
  case program
}

/// The steps of one launch of one worker, performed on other threads. Tests provide their own.
protocol LaunchSteps: AnyObject {
  /// The plan of this launch.
  var steps: [LaunchStep] { get }
  /// False: the worker was removed meanwhile.
  var isWanted: Bool { get }
  /// A child of this process that only this launch may wait for.
  var pid: Int32? { get }

  /// `then` is called once, on the loop, with the reason if the step has failed: after `limit` at the latest,
  /// and perhaps before this returns. What a step makes after `undo` has been called is removed again.
  func perform(
    _ step: LaunchStep, within limit: Duration, then: @escaping (_ refusal: String?) -> Void)

  /// Removes what the steps have made: process, channels, cgroup. `then` is called once, on the loop, when the
  /// worker can be launched again.
  func undo(then: @escaping () -> Void)
}

/// One launch of one worker: one step after the other, each with a deadline. A launch that fails, or that isn't
/// wanted any more, leaves nothing of itself. Belongs to the loop's thread.
final class LaunchAttempt {
  enum Outcome: Equatable {
    case launched
    case failed(String)
    /// The worker was removed meanwhile.
    case unwanted
  }

  /// How long a step may take. A file system that is mounted at its first use needs some seconds.
  static let patience = Duration.seconds(10)
  /// Longer, for an outcome that was lost.
  static let lossPatience = Duration.seconds(15)
  /// Two deadlines of the steps, and the jobs about the same worker that come before.
  static let undoPatience = Duration.seconds(30)

  private let launch: any LaunchSteps
  private let timers: any Timers
  private let complain: (String) -> Void
  private var end: ((Outcome) -> Void)?
  private var steps: ArraySlice<LaunchStep>
  private var operations = OperationCount()
  private var timer: EventLoop.Token?

  /// A child of this process that only this launch may wait for.
  var pid: Int32? { launch.pid }

  /// - Parameter end: called once.
  init(
    _ launch: any LaunchSteps, _ timers: any Timers,
    complain: @escaping (String) -> Void, then end: @escaping (Outcome) -> Void
  ) {
    self.launch = launch
    self.timers = timers
    self.complain = complain
    self.end = end
    steps = launch.steps[...]
  }

  deinit { stopTimer() }

  /// Performs the next step.
  func proceed() {
    guard launch.isWanted else { return undo(.unwanted) }
    guard let step = steps.popFirst() else { return conclude(.launched) }
    let number = begin(within: Self.lossPatience) { [unowned self] in
      undo(.failed("no outcome of its step `\(step)`"))
    }
    launch.perform(step, within: Self.patience) { [weak self] refusal in
      guard let self, operations.isLatest(number) else { return }
      stop()
      if let refusal { undo(.failed(refusal)) } else { proceed() }
    }
  }

  private func undo(_ outcome: Outcome) {
    let number = begin(within: Self.undoPatience) { [unowned self] in
      complain(
        "can't undo its launch within \(Self.undoPatience.spoken)")
      conclude(outcome)
    }
    launch.undo { [weak self] in
      guard let self, operations.isLatest(number) else { return }
      conclude(outcome)
    }
  }

  private func conclude(_ outcome: Outcome) {
    stop()
    let end = end
    self.end = nil
    end?(outcome)
  }

  /// Only the latest operation's outcome counts, once, and only before its deadline.
  private func begin(
    within limit: Duration, orElse overdue: @escaping () -> Void
  ) -> OperationCount.Number {
    stopTimer()
    timer = timers.after(limit) { [unowned self] in
      timer = nil
      overdue()
    }
    return operations.begin()
  }

  private func stop() {
    stopTimer()
    _ = operations.begin()
  }

  private func stopTimer() {
    if let timer { timers.cancel(timer) }
    timer = nil
  }
}

import Hibernation
import Linux
import Policy

/// Starts the standby pager, a process that brings the missing pages of workers if the daemon dies.
/// Without it these workers would wait for the next daemon. It starts when the first worker needs
/// it, and is replaced if it ends. It belongs to the event loop's thread.
final class StandbyStarter<Process: Sendable> {
  /// Starts the process on another thread, because the start waits until the process's program
  /// runs.
  typealias Start = (_ then: @escaping (JobOutcome<Result<Process, any Error>>) -> Void) -> Void

  /// Calls back after the process has ended.
  typealias WhenEnded = (Process, _ then: @escaping () -> Void) -> Void

  private let hasSuccessors: Bool
  private let start: Start
  private let hasEnded: (Process) -> Bool
  /// Makes later resumes use the process.
  private let use: (Process) -> Void
  private let whenEnded: WhenEnded
  private unowned let timers: any Timers
  private let log: (DaemonLog.Priority, String) -> Void
  private var current: Process?
  /// Called when the start that is under way has ended; empty: none is.
  private var waiting: [() -> Void] = []
  /// The number of replacements in a row of which none has run for a minute.
  private var replacements = 0

  /// - Parameter hasSuccessors: false in `dormouse wrap`, because its program doesn't outlive it.
  init(
    hasSuccessors: Bool, timers: any Timers, log: @escaping (DaemonLog.Priority, String) -> Void,
    start: @escaping Start, hasEnded: @escaping (Process) -> Bool,
    use: @escaping (Process) -> Void, whenEnded: @escaping WhenEnded
  ) {
    self.hasSuccessors = hasSuccessors
    self.start = start
    self.hasEnded = hasEnded
    self.use = use
    self.whenEnded = whenEnded
    self.timers = timers
    self.log = log
  }

  /// Starts the pager if it doesn't run or was killed.
  ///
  /// - Parameter then: called when the pager runs, or can't be started.
  func startStandbyPager(then: @escaping () -> Void = {}) {
    guard hasSuccessors else { return then() }
    if let current, !hasEnded(current) { return then() }
    waiting.append(then)
    if waiting.count > 1 { return }
    start { [weak self] outcome in
      guard let self else { return }
      switch outcome {
      case .done(.success(let new)):
        current = new
        use(new)
        let began = timers.now
        whenEnded(new) { [weak self] in self?.didEnd(startedAt: began) }
      case .done(.failure(let error)): log(.warning, "no standby pager: \(error)")
      case .overdue: log(.warning, "no standby pager: its program did not start within 10 s")
      // The thread of an earlier start, which was overdue, hasn't ended.
      case .busy: break
      }
      replaceLater()
      let waiting = waiting
      self.waiting = []
      for action in waiting { action() }
    }
  }

  private func didEnd(startedAt began: Instant) {
    if timers.now - began >= .seconds(60) { replacements = 0 }
    replaceLater()
  }

  /// Replaces a pager that has ended, after a pause: processes that end at once must not occupy the
  /// event loop. Workers may have missing pages for hours in which nothing is resumed or trimmed.
  private func replaceLater() {
    guard let current, hasEnded(current) else { return }
    timers.after(Backoff().delay(afterRestarts: replacements)) { [weak self] in
      guard let self, self.current.map(hasEnded) ?? false else { return }
      log(.warning, "the standby pager has ended: another one is started")
      startStandbyPager()
    }
    replacements += 1
  }
}

extension StandbyStarter where Process == StandbyPagerConnection {
  /// A starter for a `StandbyPagerConnection`, whose program is this program.
  static func pager(
    jobs: LoopJobs, loop: any Timers & DescriptorWatches, hibernation: HibernationService,
    log: DaemonLog, hasSuccessors: Bool, lock: String
  ) -> StandbyStarter {
    StandbyStarter(
      hasSuccessors: hasSuccessors, timers: loop, log: log.callAsFunction
    ) { then in
      jobs.run(about: "standby pager", within: .seconds(10)) {
        // This path is the process's program, even if its file has been replaced or removed since.
        Result {
          try StandbyPagerConnection(command: ["/proc/self/exe", "pager", "--lock", lock])
        }
      } then: {
        then($0)
      }
    } hasEnded: {
      $0.hasEnded()
    } use: {
      hibernation.set($0)
    } whenEnded: {
      waitForEnd(of: $0, on: loop, then: $1)
    }
  }

  static func waitForEnd(
    of connection: StandbyPagerConnection, on loop: any DescriptorWatches,
    then: @escaping () -> Void
  ) {
    let pidfd = connection.process.pidfd
    var token: LoopToken?
    // Without the watch, the next trim finds that the process has ended.
    token = try? loop.whenReadable(pidfd) { [unowned loop] in
      if let token { loop.unwatch(pidfd, token) }
      then()
    }
  }
}

import ArgumentParser
import Control
import Linux

/// Shows the output of all workers of a daemon until a signal arrives or the daemon ends.
struct ProjectOutput {
  private let connection: ConnectionOptions
  private let signals: SignalQueue
  /// The daemon that this `up` has started, which a signal stops with its workers; nil if it has
  /// started none.
  private let started: StartedDaemon?
  /// True if the screen of `top` is shown first. The output is shown after it, while workers are
  /// stopped.
  private let isScreen: Bool
  private let logs: MergedLogs

  /// - Parameter start: The time before the daemon was started, in seconds since 1970. All later
  ///   output of its workers is shown.
  init(
    _ connection: ConnectionOptions, _ signals: SignalQueue, started: StartedDaemon?,
    since start: Int64 = Clock.now().seconds, showsTimes: Bool, isScreen: Bool = false
  ) {
    self.connection = connection
    self.signals = signals
    self.started = started
    self.isScreen = isScreen
    logs = MergedLogs(
      .init(
        lastLines: isScreen ? 0 : started != nil ? nil : 50, since: isScreen ? nil : start - 1,
        showsTimes: showsTimes))
  }

  func show() throws {
    let chosen = ChosenLogs(names: [], connection: connection)
    var started = started
    if isScreen, try !showScreen(&started, chosen) { return }
    logs.add(try chosen.logs(), isPast: true)
    try logs.printPast(orUntil: [signals.raw])
    var isStopping = isScreen
    if isStopping { try stop() }
    let sleep = SleepReporter(connection)
    while true {
      // Workers that are woken to be stopped aren't reported.
      if !isStopping { sleep.connect() }
      let events = isStopping ? nil : sleep.descriptor
      let outcome = try logs.follow(or: [signals.raw] + (events.map { [$0] } ?? []))
      if outcome == .other, !isStopping { sleep.report() }
      if outcome == .other, let number = signals.next() {
        guard started != nil, !isStopping else {
          try started?.leaveRunning(stillRunning())
          throw ExitCode(128 + number)
        }
        isStopping = true
        try stop()
      }
      // While the workers end, no other daemon is waited for.
      if isStopping, connection.hasDaemon { continue }
      if !isStopping, case .more(let added) = chosen.poll() {
        logs.add(added, isPast: false)
        continue
      }
      if !isStopping, try started?.startAgain() == true { continue }
      try logs.printPast(orUntil: [signals.raw])
      try logs.printUnfinished()
      return Output.complain(isStopping ? "all workers are stopped" : "the daemon has ended")
    }
  }

  /// Shows the screen of `top`. The result is true if the workers must be stopped: the screen was
  /// quit, and this `up` has started the daemon.
  private func showScreen(_ started: inout StartedDaemon?, _ chosen: ChosenLogs) throws -> Bool {
    while true {
      do {
        try TopSession.show(connection)
        return started != nil
      } catch let signal as ExitCode {
        guard started != nil else { throw signal }
        return true
      } catch let error as ControlError
        where error.exit == .daemonEnded || error.exit == .noDaemon
      {
        // After an upgrade another daemon runs.
        if case .more = chosen.poll() { continue }
        if try started?.startAgain() == true { continue }
        Output.complain("the daemon has ended")
        return false
      }
    }
  }

  /// Returns texts such as `web (pid 4711)`. The result is empty if the daemon doesn't answer.
  private func stillRunning() -> [String] {
    // If the daemon can't be asked, `down` names the workers later.
    (connection.workersIfAnswered() ?? []).compactMap { worker in
      worker.pid.map { "\(escaped(worker.name)) (pid \($0))" }
    }
  }

  /// Asks the daemon to stop the workers. Its answer comes when all have ended; it isn't waited
  /// for, because they still write.
  private func stop() throws {
    Output.complain("stopping the workers; Ctrl-C again leaves running what hasn't ended by then")
    var client = try ControlClient(connectingTo: connection.path)
    _ = try client.send(.shutdown)
  }
}

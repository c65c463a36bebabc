import ArgumentParser
import Control
import Glibc
import Linux

/// Shows the output of all workers of a daemon until a signal arrives or the daemon ends.
struct ProjectOutput {
  private let connection: ConnectionOptions
  private let signals: SignalQueue
  /// The daemon that this `up` has started, which a signal stops with its workers; nil if it has
  /// started none.
  private let own: OwnDaemon?
  /// True if the screen of `top` is shown first. The output is shown after it, while workers are
  /// stopped.
  private let isScreen: Bool
  private let logs: MergedLogs

  /// - Parameter start: The time before the daemon was started, in seconds since 1970. All later
  ///   output of its workers is shown.
  init(
    _ connection: ConnectionOptions, _ signals: SignalQueue, own: OwnDaemon?,
    since start: Int64 = Clock.now().seconds, showsTimes: Bool, isScreen: Bool = false
  ) {
    self.connection = connection
    self.signals = signals
    self.own = own
    self.isScreen = isScreen
    logs = MergedLogs(
      .init(
        lastLines: isScreen ? 0 : own != nil ? nil : 50, since: isScreen ? nil : start - 1,
        showsTimes: showsTimes))
  }

  func show() throws {
    let chosen = ChosenLogs(names: [], connection: connection)
    var own = own
    if isScreen, try !showScreen(&own, chosen) { return }
    logs.add(try chosen.logs(), isPast: true)
    try logs.printPast()
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
        guard own != nil, !isStopping else {
          try own?.leaveRunning(stillRunning())
          throw ExitCode(128 + number)
        }
        isStopping = true
        try stop()
      }
      if case .more(let found) = isStopping ? lookWhileStopping(chosen) : chosen.look() {
        logs.add(found, isPast: false)
        continue
      }
      if !isStopping, try own?.startAgain() == true { continue }
      try logs.printPast()
      try logs.printRest()
      return Output.complain(isStopping ? "all workers are stopped" : "the daemon has ended")
    }
  }

  /// Shows the screen of `top`. The result is true if the workers must be stopped: the screen was
  /// quit, and this `up` has started the daemon.
  private func showScreen(_ own: inout OwnDaemon?, _ chosen: ChosenLogs) throws -> Bool {
    while true {
      do {
        try TopSession.show(connection)
        return own != nil
      } catch let signal as ExitCode {
        guard own != nil else { throw signal }
        return true
      } catch let error as ControlError
        where error.exit == .daemonEnded || error.exit == .noDaemon
      {
        // After an upgrade another daemon runs.
        if case .more = chosen.look() { continue }
        if try own?.startAgain() == true { continue }
        Output.complain("the daemon has ended")
        return false
      }
    }
  }

  /// Returns the logs without waiting for another daemon.
  private func lookWhileStopping(_ chosen: ChosenLogs) -> ChosenLogs.Look {
    connection.hasDaemon ? .more([]) : .over("")
  }

  /// Returns texts such as `web (pid 4711)`. The result is empty if the daemon doesn't answer.
  private func stillRunning() -> [String] {
    // If the daemon can't be asked, `down` names the workers later.
    guard var daemon = try? connection.connect(),
      let workers = try? daemon.client.perform(.ps, timeout: .seconds(2)).workers
    else { return [] }
    return workers.compactMap { worker in
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

/// The daemon that this `up` has started.
struct OwnDaemon {
  private let project: ProjectDaemon
  private let policy: String?
  private var process: DetachedProgram
  private var crashes: [ContinuousClock.Instant] = []

  /// The limit of crashes after which the daemon isn't started again.
  private static let limit = (crashes: 3, within: Duration.seconds(60))

  init(_ process: DetachedProgram, of project: ProjectDaemon, policy: String?) {
    self.process = process
    self.project = project
    self.policy = policy
  }

  /// Starts the daemon again after a crash. Its workers continue to run, and the new daemon takes
  /// them over. The result is false if the daemon ended on request, or crashes too often.
  mutating func startAgain() throws -> Bool {
    guard let code = process.exitCode(), code != 0 else { return false }
    let end = code > 128 ? "was ended by signal \(code - 128)" : "failed with exit code \(code)"
    let now = ContinuousClock.now
    crashes = crashes.filter { now - $0 < Self.limit.within } + [now]
    guard crashes.count <= Self.limit.crashes else {
      Output.complain(
        "the daemon \(end), too often to start it again; its messages are in "
          + escaped(project.log))
      return false
    }
    guard let next = try project.start(policy: policy) else { return false }
    process = next
    Output.complain(
      "the daemon \(end); started again (pid \(next.pid)), and its workers are taken over")
    return true
  }

  /// Ends the daemon, and leaves workers running. A signal to a daemon that stops its workers ends
  /// it at once: no SIGKILL follows for workers that haven't ended yet.
  ///
  /// - Parameter left: The workers that haven't ended.
  func leaveRunning(_ left: [String]) throws {
    // The process isn't reaped, so no other process has its pid.
    guard process.exitCode() == nil else { return }
    try process.signal(SIGTERM)
    let workers =
      left.isEmpty
      ? "workers that still run are left running"
      : left.joined(separator: ", ")
        + (left.count == 1 ? " is left running" : " are left running")
    Output.complain(
      "the daemon ends; \(workers): `dormouse down` stops what runs, `dormouse up` takes it over")
  }
}

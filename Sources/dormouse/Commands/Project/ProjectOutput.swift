import ArgumentParser
import Control
import Glibc
import Linux

/// The output of all workers of a daemon until a signal comes or the daemon ends.
struct ProjectOutput {
  private let connection: ConnectionOptions
  private let signals: SignalQueue
  /// At a signal the daemon and its workers are stopped, too.
  private let stopsAtEnd: Bool
  private let logs: MergedLogs

  init(
    _ connection: ConnectionOptions, _ signals: SignalQueue, stopsAtEnd: Bool, showsTimes: Bool
  ) {
    self.connection = connection
    self.signals = signals
    self.stopsAtEnd = stopsAtEnd
    logs = MergedLogs(
      .init(
        lastLines: stopsAtEnd ? nil : 50, since: Clock.now().seconds - 1, showsTimes: showsTimes))
  }

  func show() throws {
    let chosen = ChosenLogs(names: [], connection: connection)
    logs.add(try chosen.logs(), isPast: true)
    try logs.printPast()
    var isStopping = false
    var daemon: ProcessIdentity?
    let sleep = SleepReporter(connection)
    while true {
      // Workers that are woken to be stopped are no news.
      if !isStopping { sleep.connect() }
      let events = isStopping ? nil : sleep.descriptor
      let outcome = try logs.follow(or: [signals.raw] + (events.map { [$0] } ?? []))
      if outcome == .other, !isStopping { sleep.report() }
      if outcome == .other, let number = signals.next() {
        guard stopsAtEnd, !isStopping else {
          try leaveRunning(daemon)
          throw ExitCode(128 + number)
        }
        isStopping = true
        daemon = try stop()
      }
      if case .more(let found) = isStopping ? lookWhileStopping(chosen) : chosen.look() {
        logs.add(found, isPast: false)
        continue
      }
      try logs.printPast()
      try logs.printRest()
      return Output.complain(isStopping ? "all workers are stopped" : "the daemon has ended")
    }
  }

  /// Doesn't wait for another daemon.
  private func lookWhileStopping(_ chosen: ChosenLogs) -> ChosenLogs.Look {
    connection.hasDaemon ? .more([]) : .over("")
  }

  /// The daemon answers when all have ended; that isn't waited for, because they still write.
  ///
  /// - Returns: the daemon's process; nil: it can't be found.
  private func stop() throws -> ProcessIdentity? {
    Output.complain("stopping the workers; Ctrl-C again leaves running what hasn't ended by then")
    var client = try ControlClient(connectingTo: connection.path)
    let pid = try client.perform(.status, timeout: .seconds(2)).daemon?.pid
    _ = try client.send(.shutdown)
    // A daemon that has ended already leaves nothing to do.
    return pid.flatMap { try? ProcessStat.read($0).identity }
  }

  /// A signal to a daemon that stops its workers ends it at once: no SIGKILL follows for workers
  /// that take their time.
  private func leaveRunning(_ daemon: ProcessIdentity?) throws {
    guard let daemon, try daemon.signal(SIGTERM) else { return }
    Output.complain("the daemon ends; workers that still run are left running")
  }
}

import Control
import Linux
import TestSupport
import Testing

/// Steps of several suites.
extension TestDaemon {
  /// Workers sleep on request only. Other overrides and `workers:` may follow.
  static let patient = """
    policy_overrides:
      background: { suspend_after: 1h }
      hibernate: { after: never, cooldown: 0s, max_footprint: 32MB }

    """

  /// Asks the daemon five times. A loop that hangs wouldn't answer.
  func expectAnswers() throws {
    for _ in 0..<5 {
      var client = try ControlClient(connectingTo: socket)
      _ = try client.perform(.ps, worker: nil, timeout: .seconds(60))
    }
    #expect(try !hasEnded(), "\(logText)")
  }

  /// Waits until these workers run, and brings one of them to the front. All are launched at once,
  /// and the last one of the configuration takes the foreground.
  func bringToFront(_ front: String, among workers: [String]) throws {
    #expect(try eventually { try workers.allSatisfy { try worker($0).pid != nil } })
    try done("foreground", front)
  }

  /// Waits until the worker is ready. The one that was ready last is in the foreground.
  func waitUntilRuns(_ name: String) throws {
    let runs = try eventually { try ["foreground", "background"].contains(worker(name).state) }
    guard runs else { throw TestFailure("\(name) doesn't run: \(logText)") }
  }

  /// What the worker has written to its log, which the daemon keeps.
  func workerLog(_ name: String) -> String {
    (try? readText("\(state)/logs/\(name).log")) ?? ""
  }

  func waitForWorkerLog(_ name: String, _ text: String) throws {
    guard try eventually({ workerLog(name).contains(text) }) else {
      throw TestFailure("no `\(text)` in \(workerLog(name)); the daemon: \(logText)")
    }
  }

  /// Runs `dormouse recover` with the daemon's state, and with these variables in addition.
  func recover(_ variables: [String: String] = [:]) throws -> Outcome {
    var command = Command.dormouse(["recover", "--state-directory", state])
    command.environment.merge(variables) { $1 }
    return try command.run(in: scratch)
  }
}

import Control
import TestSupport
import Testing

/// Steps of several suites.
extension TestDaemon {
  /// Asks the daemon five times. A loop that hangs wouldn't answer.
  func expectAnswers() throws {
    for _ in 0..<5 {
      var client = try ControlClient(connectingTo: socket)
      _ = try client.perform(.ps, worker: nil, timeout: .seconds(60))
    }
    #expect(try !hasEnded(), "\(logText)")
  }

  /// Runs `dormouse recover` with the daemon's state, and with these variables in addition.
  func recover(_ variables: [String: String] = [:]) throws -> Outcome {
    var command = Command(
      arguments: [TestMachine.executable, "recover", "--state-directory", state])
    command.environment.merge(variables) { $1 }
    return try command.run(in: scratch)
  }
}

import Control
import Glibc
import Linux

/// The daemon that this `up` has started.
struct StartedDaemon {
  let project: ProjectDaemon
  let policy: String?
  var process: DetachedProgram
  var crashes: [ContinuousClock.Instant] = []

  /// The limit of crashes after which the daemon isn't started again.
  private static let limit = (crashes: 3, within: Duration.seconds(60))

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

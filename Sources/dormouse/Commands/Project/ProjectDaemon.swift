import Control
import Daemon
import Linux

/// The daemon of a project. This starts it, waits for it, and stops it.
struct ProjectDaemon {
  let project: Project
  let paths: DefaultPaths

  private var daemon: BackgroundDaemon {
    BackgroundDaemon(
      name: "the daemon of project \(escaped(project.name))", socket: paths.socket(of: project),
      state: paths.stateDirectory(of: project), directory: project.directory,
      options: ["--config", project.configuration])
  }

  var isRunning: Bool { daemon.isRunning }
  var log: String { daemon.log }

  /// Starts the daemon, and returns its process. The result is nil if it runs already.
  func start(policy: String?) throws -> DetachedProgram? {
    var daemon = daemon
    if daemon.isRunning { return nil }
    try daemon.makeState()
    try StateFile.replace(
      paths.mark(of: project), with: Array("\(project.directory)\n".utf8), durability: .none)
    if let policy { daemon.options += ["--policy", policyForDaemon(policy)] }
    return try daemon.start()
  }

  /// Stops the daemon, and returns its answer.
  func stop() throws -> String {
    var connection = DaemonConnection(client: try ControlClient(connectingTo: daemon.socket))
    let text = escaped(try connection.ask(.shutdown).text)
    // The daemon answers before its socket is closed, and keeps its state directory locked until
    // its process has ended.
    _ = waitUntil(Deadline(in: BackgroundDaemon.startTimeout)) { !isRunning && !isStateInUse }
    return text
  }

  /// Returns the workers that a daemon has left running without one. It throws an error if they
  /// can't be searched for.
  func leftWorkers() throws -> [String] {
    let state = daemon.state
    if isAbsent(state) { return [] }
    do throws(StartError) { return try OfflineRecovery(stateDirectory: state).livingWorkers } catch
    {
      throw CommandFailure(.cannotCreate, escaped("\(error)"))
    }
  }

  /// Stops the workers that were left without a daemon. A daemon that starts no worker takes them
  /// over for that: it can verify and wake them.
  func stopLeftWorkers() throws -> String {
    var daemon = daemon
    daemon.options.append("--take-over-only")
    _ = try daemon.start()
    return try stop()
  }

  private var isStateInUse: Bool {
    do {
      _ = try StateLock(openTrusted(daemon.state, as: .exclusive))
      return false
    } catch StartError.inUse { return true } catch { return false }
  }
}

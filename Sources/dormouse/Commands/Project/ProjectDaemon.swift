import Control
import Daemon
import Glibc
import Linux

/// The daemon of a project: starts it, waits for it, and stops it.
struct ProjectDaemon {
  let project: Project
  private let paths: DefaultPaths

  init(_ project: Project, _ paths: DefaultPaths) {
    self.project = project
    self.paths = paths
  }

  /// A daemon's start takes some 50 ms; a machine with a lot to do may need seconds.
  private static let patience = Duration.seconds(20)

  private var socket: String { paths.socket(of: project) }
  /// The daemon's own messages.
  private var log: String { "\(paths.stateDirectory(of: project))/daemon.log" }

  var isRunning: Bool {
    do throws(ControlError) {
      _ = try ControlClient(connectingTo: socket)
      return true
    } catch { return error.exit != .noDaemon }
  }

  /// Returns false if it runs already.
  func start(policy: String?) throws -> Bool {
    if isRunning { return false }
    let state = paths.stateDirectory(of: project)
    for directory in [paths.projectsDirectory, state] { try make(directory) }
    try StateFile.replace(
      paths.mark(of: project), with: Array("\(project.directory)\n".utf8), durability: .none)
    var command = [
      try OwnProgram.path(ProcessEnvironment.current().variables, isKept: false), "daemon",
      "--config",
      project.configuration, "--socket", socket, "--state-directory", state,
    ]
    if let policy { command += ["--policy", policyForDaemon(policy)] }
    let before = fileStatus(of: log)?.st_size ?? 0
    let child = try DetachedProgram(command, in: project.directory, output: log)
    let deadline = Deadline(in: Self.patience)
    let isThere = try waitUntil(deadline) { () throws(CommandFailure) in
      if let code = child.exitCode() {
        Output.standardError(newLog(from: Int(before)))
        throw CommandFailure(
          exit: CommandExit(rawValue: code) ?? .notDone,
          text: "the daemon of project \(escaped(project.name)) didn't start")
      }
      return isRunning
    }
    guard isThere else {
      throw CommandFailure(
        exit: .notDone,
        text: "the daemon of project \(escaped(project.name)) doesn't answer; its messages are in "
          + escaped(log))
    }
    return true
  }

  /// What the daemon answered.
  func stop() throws -> String {
    var daemon = DaemonConnection(client: try ControlClient(connectingTo: socket))
    let text = escaped(try daemon.ask(.shutdown).text)
    // It answers before its socket is closed, and holds its state directory until its process has ended.
    _ = waitUntil(Deadline(in: Self.patience)) { !isRunning && !isStateInUse }
    return text
  }

  private var isStateInUse: Bool {
    do {
      _ = try StateLock(openTrusted(paths.stateDirectory(of: project), as: .own))
      return false
    } catch StartError.inUse { return true } catch { return false }
  }

  private func make(_ directory: String) throws {
    do throws(SystemCallError) {
      var path = ""
      for part in directory.split(separator: "/") {
        path += "/\(part)"
        try makeDirectory(path, mode: 0o700)
      }
    } catch { throw CommandFailure(exit: .cannotCreate, text: error.description) }
  }

  private func newLog(from start: Int) -> String {
    // Without it the exit code is all there is.
    guard let bytes = try? readFile(log), bytes.count > start else { return "" }
    return String(decoding: bytes[start...].suffix(8192), as: UTF8.self)
  }
}

import Control
import Glibc
import Linux

/// A daemon that `up`, `run` or `daemon --detach` starts, and that outlives this verb.
struct BackgroundDaemon {
  /// The daemon's name in messages, such as "the daemon of project shop".
  var name = "the daemon"
  let socket: String
  let state: String
  /// The daemon's working directory.
  var directory = "/"
  /// Further options of `dormouse daemon`.
  var options: [String] = []

  /// The timeout of a start. A start takes some 50 ms, but many seconds on a busy machine.
  static let startTimeout = Duration.seconds(60)

  /// The path of the file with the daemon's messages.
  var log: String { "\(state)/daemon.log" }

  var isRunning: Bool { Self.listens(at: socket) }

  static func listens(at path: String) -> Bool {
    do throws(ControlError) {
      _ = try ControlClient(connectingTo: path)
      return true
    } catch { return error.exit != .noDaemon }
  }

  /// Starts the daemon, and returns its process when it answers. The result is nil if a daemon runs
  /// already.
  func start() throws -> DetachedProgram? {
    if isRunning { return nil }
    try makeState()
    let command = [
      try DormouseExecutable.path(ProcessEnvironment.current().variables, isKept: false), "daemon",
      "--socket", socket, "--state-directory", state,
    ]
    let before = fileStatus(of: log)?.st_size ?? 0
    let child = try DetachedProgram(command + options, in: directory, output: log)
    var hasEnded = false
    let answers = try waitUntil(Deadline(in: Self.startTimeout)) { () throws(CommandFailure) in
      if isRunning { return true }
      guard let code = child.exitCode() else { return false }
      hasEnded = true
      let exit = CommandExit(rawValue: code) ?? .notDone
      // Another verb may have started a daemon at the same moment, which answers soon.
      if exit == .cannotCreate, waitUntil(Deadline(in: .seconds(10)), { isRunning }) { return true }
      Output.standardError(newLog(from: Int(before)))
      throw CommandFailure(exit, "\(name) didn't start")
    }
    guard answers else {
      throw CommandFailure(.notDone, "\(name) doesn't answer; its messages are in \(escaped(log))")
    }
    let running = runningPid
    if running == child.pid { return child }
    if running != nil, !hasEnded { end(child) }
    return nil
  }

  /// Ends a daemon that another verb's daemon has preceded: it waits for the end of that one, and
  /// would take its place after a `shutdown`.
  private func end(_ child: DetachedProgram) {
    // The signal can't fail: the child's exit code hasn't been read.
    try? child.signal(SIGTERM)
    _ = waitUntil(Deadline(in: .seconds(10))) { child.exitCode() != nil }
  }

  /// The pid of the daemon that answers; nil if none answers.
  private var runningPid: Int32? {
    do throws(ControlError) {
      var client = try ControlClient(connectingTo: socket)
      return try client.perform(.status, timeout: Self.startTimeout).daemon?.pid
    } catch { return nil }
  }

  func makeState() throws {
    do throws(SystemCallError) { try makeDirectories(state) } catch {
      throw CommandFailure(.cannotCreate, error.description)
    }
  }

  private func newLog(from start: Int) -> String {
    // If the log can't be read, the exit code is the only information.
    guard let bytes = try? readFile(log), bytes.count > start else { return "" }
    return String(decoding: bytes[start...].suffix(8192), as: UTF8.self)
  }
}

/// Creates a directory and those above it, for this user alone.
func makeDirectories(_ path: String) throws(SystemCallError) {
  var whole = ""
  for component in path.split(separator: "/") {
    whole += "/\(component)"
    try makeDirectory(whole, mode: 0o700)
  }
}

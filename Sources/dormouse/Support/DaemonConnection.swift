import ArgumentParser
import Control
import Glibc
import Linux
import PolicyFile

/// The options that choose a daemon: its socket or its project.
struct ConnectionOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The daemon's control socket. Default: $DORMOUSE_CONTROL_SOCKET, or else "
        + "$XDG_RUNTIME_DIR/dormouse/control.sock (root: /run/dormouse/control.sock).",
      valueName: "path"), completion: .file())
  var socket: String?

  @Option(
    help: ArgumentHelp(
      "Use the daemon of this project: its directory, or its name in `dormouse ls`. Default: that "
        + "of the current directory, if `dormouse up` has started it.", valueName: "project"))
  var project: String?

  func validate() throws {
    if socket != nil, project != nil {
      throw ValidationError("--socket or --project, one of the two.")
    }
  }

  /// Returns the daemon's socket, and the project whose daemon it is.
  func target() throws -> (path: String, project: Project?) {
    let paths = DefaultPaths.ofThisProcess()
    if let socket, !socket.isEmpty { return (socket, nil) }
    if let project {
      let selected = try ProjectLookup(paths).project(project)
      return (paths.socket(of: selected), selected)
    }
    if let path = paths.socketFromEnvironment { return (path, nil) }
    // A dormouse.yaml that `dormouse up` hasn't started belongs to the user's own daemon, or to
    // none. If `up` has ever started it, the user's own daemon is never meant: it may have workers
    // with the same names.
    if let here = ProjectLookup.ofCurrentDirectory(),
      !isAbsent(paths.socket(of: here)) || !isAbsent(paths.mark(of: here))
    {
      return (paths.socket(of: here), here)
    }
    return (paths.socket(), nil)
  }

  // A project that doesn't exist is reported by `connect`.
  var path: String { (try? target().path) ?? DefaultPaths.ofThisProcess().socket() }

  /// True if an option names a daemon.
  var isNamed: Bool { socket != nil || project != nil }

  /// False if no daemon listens. `connect` reports any other failure.
  var hasDaemon: Bool { BackgroundDaemon.listens(at: path) }

  /// The workers; nil if the daemon can't be asked now, or is busy for 2 s.
  func workersIfAnswered() -> [WorkerReport]? {
    // The callers do without the answer.
    guard var daemon = try? connect() else { return nil }
    return try? daemon.client.perform(.ps, timeout: .seconds(2)).workers
  }

  func connect() throws -> DaemonConnection {
    let (path, project) = try target()
    do throws(ControlError) {
      return DaemonConnection(
        client: try ControlClient(connectingTo: path, isNamed: socket != nil))
    } catch {
      guard case .noDaemon = error, socket == nil,
        let meant = project
          ?? (path == DefaultPaths.ofThisProcess().socket()
            ? ProjectLookup.ofCurrentDirectory() : nil)
      else { throw error }
      throw ControlError.noDaemonOfProject(
        meant.name, file: meant.configuration, path: path)
    }
  }

  /// Asks the daemon. At an upgrade the next daemon may be starting, so it is tried for 5 s.
  ///
  /// - Returns: the answer; nil if no daemon answers.
  static func askAcrossUpgrade<Reply>(_ ask: () throws -> Reply) -> Reply? {
    for attempt in 0..<50 {
      if attempt > 0 { pauseThread(for: .milliseconds(100)) }
      do { return try ask() } catch {}  // There is no daemon now.
    }
    return nil
  }

  /// Connects to the daemon. If the user's own daemon is meant and doesn't run, it is started in
  /// the background.
  ///
  /// - Parameter policy: The daemon's policy, a name or a path. It is an error if the daemon runs
  ///   with another one.
  func connectOrStart(policy: String?) throws -> DaemonConnection {
    let (path, project) = try target()
    if project == nil, !isNamed, !hasDaemon {
      var options = DaemonOptions.standard(DefaultPaths.ofThisProcess())
      // The daemon listens at the path at which this verb connects, whatever the configuration
      // says.
      options.socket = path
      options.policy = policy
      let daemon = try options.inBackground()
      if let process = try daemon.start() {
        Output.complain(
          "started your daemon in the background (pid \(process.pid), messages in "
            + "\(escaped(daemon.log))); `dormouse shutdown` ends it")
        return try connect()
      }
    }
    var daemon = try connect()
    if let policy { try daemon.check(policy) }
    return daemon
  }
}

/// A client that waits without a limit, and reports that after a second.
struct DaemonConnection: ~Copyable {
  var client: ControlClient

  /// Sends a request, and returns the response. It throws an error if the result isn't `done`.
  mutating func ask(
    _ verb: ControlRequest.Verb, worker: String? = nil,
    _ fill: (inout ControlRequest) -> Void = { _ in }
  ) throws -> ControlResponse {
    let response = try request(verb, worker: worker, fill)
    guard response.result == .done else { throw failure(response, of: worker) }
    return response
  }

  /// Asks for a report. It throws an error if the response has none.
  ///
  /// - Parameter subject: The subject of the report, for the error; nil for the worker.
  mutating func ask<Report>(
    _ verb: ControlRequest.Verb, worker: String? = nil,
    for report: KeyPath<ControlResponse, Report?>, about subject: String? = nil,
    _ fill: (inout ControlRequest) -> Void = { _ in }
  ) throws -> Report {
    if let report = try ask(verb, worker: worker, fill)[keyPath: report] { return report }
    throw CommandFailure.noReport(of: subject ?? worker ?? "the daemon")
  }

  /// Sends a request, and returns the response with any result.
  mutating func request(
    _ verb: ControlRequest.Verb, worker: String? = nil,
    _ fill: (inout ControlRequest) -> Void = { _ in }
  ) throws -> ControlResponse {
    let id = try client.send(verb, worker: worker, fill)
    return try wait(for: id, what: worker.map { "\(verb.rawValue) \($0)" })
  }

  /// Makes the failure of a response. It suggests the nearest name if the daemon has no worker with
  /// this one.
  mutating func failure(
    _ response: ControlResponse, of worker: String?, keepsLines: Bool = false
  ) -> CommandFailure {
    var failure = CommandFailure(response, keepsLines: keepsLines)
    guard response.result == .unknownWorker, let worker,
      // Without an answer the failure has no suggestion.
      let workers = try? client.perform(.ps, timeout: .seconds(1)).workers,
      let name = nearest(to: worker, among: workers.map(\.name))
    else { return failure }
    failure.text = "\(escaped(response.text)); did you mean `\(escaped(name))`?"
    return failure
  }

  /// Waits for a response without a limit. After 1 s a terminal shows what is waited for.
  mutating func wait(for id: UInt64, what: String?) throws(ControlError) -> ControlResponse {
    guard isatty(STDERR_FILENO) == 1 else { return try client.response(to: id) }
    do {
      return try client.response(to: id, timeout: .seconds(1))
    } catch .timedOut {
      Output.standardError("waiting\(what.map { " (\(escaped($0)))" } ?? "")…")
      // Moves to the start of the line and clears it.
      defer { Output.standardError("\r\u{1B}[K") }
      return try client.response(to: id)
    }
  }

  /// Throws an error if the daemon has another policy.
  mutating func check(_ policy: String) throws {
    let library = PolicyLibrary(directories: DefaultPaths.ofThisProcess().policyDirectories)
    let loaded = library.load(policy)
    guard let wanted = loaded.value else {
      PolicyCheck.complain(loaded.errors)
      throw CommandFailure(.badConfiguration, "nothing started: fix the policy's errors above")
    }
    let active = try ask(.status).daemon?.policy ?? ""
    if active == wanted.name { return }
    throw CommandFailure(
      .notDone,
      "nothing started: the daemon that runs has the policy `\(escaped(active))`, not `"
        + "\(escaped(wanted.name))`; `policy:` in its configuration changes it, and --set changes "
        + "values for this worker")
  }

  /// Waits for a response until the limit. The result is nil if the response hasn't arrived; the
  /// call may be repeated.
  mutating func response(
    to id: UInt64, within limit: Duration
  ) throws(ControlError) -> ControlResponse? {
    do {
      return try client.response(to: id, timeout: limit)
    } catch {
      // `catch .timedOut`, in a function whose caller throws untyped, crashes Swift 6.3.1.
      guard case .timedOut = error else { throw error }
      return nil
    }
  }
}

extension CommandFailure {
  static func noReport(of subject: String) -> CommandFailure {
    CommandFailure(.notDone, "the daemon sent no report about \(escaped(subject))")
  }

  /// The failure of a response.
  ///
  /// - Parameter keepsLines: True if the text is diagnostics with several lines. Any other text is
  ///   one sentence, even if a name in it has line breaks.
  init(_ response: ControlResponse, keepsLines: Bool = false) {
    let next = response.result == .unknownWorker ? "; `dormouse ps` lists all workers" : ""
    let text = response.text + next
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    self.init(
      response.result.exit,
      keepsLines ? lines.map { escaped(String($0)) }.joined(separator: "\n") : escaped(text))
  }
}

import Glibc
import Linux

/// How a worker is asked to give memory back.
public enum ShedChannel: Hashable, Sendable {
  /// Only ever sent to processes that handle it: an unhandled signal ends its receiver.
  case signal(Int32)
  /// Argv of a program that makes it so (`redis-cli memory purge`).
  case command([String])
  /// The listeners of its `PressureWatch`.
  case notify
}

/// Why a worker can't be asked.
public enum ShedRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  case notCaught(signal: Int32)
  case nobodyListens
  case command(LaunchError)
  case failed(SystemCallError)

  public var description: String {
    switch self {
    case .notCaught(let signal):
      "not asked to shed: none of its processes handles \(SignalName.text(signal)), "
        + "which would end them"
    case .nobodyListens:
      "not asked to shed: none of its processes listens at MEMORY_PRESSURE_WATCH"
    case .command(let error): "its shed command didn't start: \(error)"
    case .failed(let error): "it couldn't be asked to shed: \(error)"
    }
  }
}

/// One request to give memory back, from the asking to the end of what runs for it. Belongs to the
/// event loop's thread.
public final class ShedRequestRun {
  public let channel: ShedChannel
  /// Processes or connections that were asked; 1 for a command.
  public let askedCount: Int
  private var command: SpawnedProcess?

  /// Of the command, while it runs.
  public var commandPid: Int32? { command?.pid }

  /// Polls readable when the command has ended; nil where none runs.
  public var pidfd: Descriptor? { command?.pidfd }

  private init(channel: ShedChannel, askedCount: Int, command: SpawnedProcess? = nil) {
    self.channel = channel
    self.askedCount = askedCount
    self.command = command
  }

  deinit { cancel() }

  /// `watch`: the worker's, for `notify`.
  public static func start(
    _ channel: ShedChannel, worker: WorkerProcess, watch: PressureWatch? = nil
  ) throws(ShedRefusal) -> ShedRequestRun {
    switch channel {
    case .signal(let signal):
      let asked = try asking { () throws(SystemCallError) in
        try worker.tree(receiving: signal).signalAll(signal)
      }
      if asked == 0 { throw .notCaught(signal: signal) }
      return ShedRequestRun(channel: channel, askedCount: asked)
    case .notify:
      let asked = try asking { () throws(SystemCallError) in try watch?.notifyAll() ?? 0 }
      if asked == 0 { throw .nobodyListens }
      return ShedRequestRun(channel: channel, askedCount: asked)
    case .command(let arguments):
      do throws(LaunchError) {
        let process = try worker.runBeside(arguments)
        return ShedRequestRun(channel: channel, askedCount: 1, command: process)
      } catch {
        throw .command(error)
      }
    }
  }

  private static func asking(
    _ body: () throws(SystemCallError) -> Int
  ) throws(ShedRefusal) -> Int {
    do throws(SystemCallError) { return try body() } catch { throw .failed(error) }
  }

  /// How the command ended; nil while it runs, or where there is none. Only after `pidfd` has
  /// polled readable.
  public func reap() throws(SystemCallError) -> WorkerExit? {
    guard let running = command else { return nil }
    guard let exit = try reapChild(running.pidfd, pid: running.pid) else { return nil }
    command = nil
    return exit
  }

  /// Ends what still runs for the request.
  public func cancel() {
    guard let running = command else { return }
    command = nil
    try? ProcessTree.killAll(root: running.identity, session: running.pid)
    kill(running.pid, SIGKILL)
    // Killed processes end at once, unless they wait for a device or have much memory to give back.
    // Nobody waits for those here; they are reaped with the other orphans.
    let ended = try? pollDescriptor(
      running.pidfd.raw, for: POLLIN, until: Deadline(in: .milliseconds(50)))
    if ended == true { _ = try? reapChild(running.pidfd, pid: running.pid) }
  }
}

extension WorkerProcess {
  /// Runs a command on the worker's behalf: its directory, its log, its environment but for the
  /// sockets that it talks to us through. Outside its cgroup: the command's memory isn't the
  /// worker's, and freezing the worker must not stop it.
  ///
  /// `keepsOutput`: in the worker's log; else nobody sees it.
  func runBeside(
    _ arguments: [String], keepsOutput: Bool = true
  ) throws(LaunchError) -> SpawnedProcess {
    var environment = plan.bareEnvironment
    environment["DORMOUSE_WORKER_PID"] = "\(identity.pid)"
    let path = try plan.executable(of: arguments)
    let output: Descriptor
    let null: Descriptor
    do throws(SystemCallError) {
      null = try Descriptor.open("/dev/null", O_RDWR)
      // Not rotated: the worker is writing to it.
      output = keepsOutput ? try WorkerLog.open(plan.logPlace, limit: .max).descriptor : null
    } catch {
      throw .log(error)
    }
    var request = SpawnRequest(
      path: path, arguments: arguments, environment: environment, directory: plan.directory,
      input: null.raw, output: output.raw, error: output.raw)
    request.terms = plan.commandTerms
    do throws(SpawnError) { return try spawn(request) } catch { throw .spawn(error) }
  }
}

import Glibc
import Linux
import Policy

/// One question of a probe, from the asking to the answer. Never blocks; belongs to the event loop's
/// thread, which watches `descriptor`, calls `proceed` when that is due, and `expire` when the
/// probe's time-out is over.
///
///     start ──▶ awaiting(.writable)   connecting
///          ├──▶ awaiting(.readable)   a command runs, or a response is due
///          └──▶ ended(success or failure, with its reason)
public final class ProbeRunner {
  public enum Outcome: Hashable, Sendable {
    case success
    /// A clause: `/healthz answered 503`.
    case failure(String)
  }

  public enum Progress: Equatable, Sendable {
    case awaiting(Epoll.Interest)
    case ended(Outcome)
  }

  public let probe: Probe
  public private(set) var progress: Progress
  private var command: SpawnedProcess?
  private var socket: Descriptor?
  private var exchange: HTTPExchange?

  /// What to watch while it awaits something.
  public var descriptor: Descriptor? { socket ?? command?.pidfd }
  /// A child of this process that must not be reaped by anybody else.
  public var commandPid: Int32? { command?.pid }

  /// Asks. What can't even be asked has failed.
  public static func start(_ probe: Probe, worker: WorkerProcess) -> ProbeRunner {
    let runner = ProbeRunner(probe)
    switch probe.action {
    case .exec(let arguments):
      do throws(LaunchError) {
        runner.command = try worker.runBeside(arguments, keepsOutput: false)
        runner.progress = .awaiting(.readable)
      } catch { runner.end(.failure("\(error)")) }
    case .tcp(let host, let port): runner.connect(host, port)
    case .http(let request):
      runner.exchange = HTTPExchange(request)
      runner.connect(request.host, request.port)
    }
    return runner
  }

  private init(_ probe: Probe) {
    self.probe = probe
    progress = .awaiting(.writable)
  }

  deinit { stopCommand() }

  /// Goes on after `descriptor` was due.
  public func proceed() {
    guard case .awaiting(let interest) = progress else { return }
    if command != nil { return commandEnded() }
    guard let socket else { return }
    if interest == .writable {
      var code: Int32 = 0
      var length = socklen_t(MemoryLayout<Int32>.size)
      let result = kernelResult {
        getsockopt(socket.raw, SOL_SOCKET, SO_ERROR, &code, &length)
      }
      connected(result == 0 ? code : -result)
    } else {
      receive(socket)
    }
  }

  /// Its time is over.
  public func expire() {
    guard case .awaiting = progress else { return }
    // A status is an answer, even if the rest of the page takes its time.
    if let status = exchange?.status { return end(Self.verdict(status, exchange)) }
    end(.failure("no answer within \(probe.timeout.components.seconds) s"))
  }

  /// The answer isn't wanted any more.
  public func cancel() {
    if case .awaiting = progress { end(.failure("it was called off")) }
  }

  private func end(_ outcome: Outcome) {
    stopCommand()
    socket = nil
    progress = .ended(outcome)
  }

  // MARK: a command

  private func commandEnded() {
    guard let running = command,
      let exit = try? reapChild(running.pidfd, pid: running.pid)
    else { return }
    command = nil
    switch exit {
    case .exited(0): end(.success)
    case .exited(let code): end(.failure("its command exited with \(code)"))
    case .signaled(let signal):
      end(.failure("its command was ended by \(SignalName.text(signal))"))
    case .unknown: end(.failure("how its command ended isn't known"))
    }
  }

  /// With what it has started. Whoever doesn't end at once is reaped with the other orphans.
  private func stopCommand() {
    guard let running = command else { return }
    command = nil
    try? ProcessTree.killAll(root: running.identity, session: running.pid)
    kill(running.pid, SIGKILL)
    let ended = try? pollDescriptor(
      running.pidfd.raw, for: POLLIN, until: Deadline(in: .milliseconds(20)))
    if ended == true { _ = try? reapChild(running.pidfd, pid: running.pid) }
  }

  // MARK: a connection

  private func connect(_ host: String, _ port: UInt16) {
    guard let address = InternetAddress(host, port) else {
      return end(.failure("\(host) is no address: names aren't looked up here"))
    }
    let flags = SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
    let raw = kernelResult { Glibc.socket(address.family, Int32(flags), 0) }
    guard raw >= 0 else { return end(.failure("socket: \(String(cString: strerror(-raw)))")) }
    let socket = Descriptor(owning: raw)
    self.socket = socket
    let result = address.withPointer { target, length in
      kernelResult { Glibc.connect(raw, target, length) }
    }
    if result == -EINPROGRESS {
      progress = .awaiting(.writable)
    } else {
      connected(-result)
    }
  }

  private func connected(_ code: Int32) {
    guard let socket else { return }
    if code != 0 { return end(.failure("port \(port): \(String(cString: strerror(code)))")) }
    // Who asks often enough for a port that nobody has connects to himself one day.
    if InternetAddress.localPort(of: socket) == port {
      return end(.failure("port \(port): nobody listens"))
    }
    guard let exchange else { return end(.success) }
    // A new socket's buffer holds all of it.
    let request = exchange.request
    let sent = send(socket.raw, request, request.count, Int32(MSG_NOSIGNAL))
    guard sent == request.count else { return end(.failure("port \(port): it takes no request")) }
    progress = .awaiting(.readable)
  }

  private var port: UInt16 {
    switch probe.action {
    case .tcp(_, let port): port
    case .http(let request): request.port
    case .exec: 0
    }
  }

  private func receive(_ socket: Descriptor) {
    do throws(SystemCallError) {
      let part = try socket.read(upTo: 16 << 10)
      exchange?.take(part)
      if exchange?.isComplete == true || part.isEmpty {
        end(Self.verdict(exchange?.status, exchange))
      }
    } catch {
      if error.code == EAGAIN { return }
      end(exchange?.status.map { Self.verdict($0, exchange) } ?? .failure("\(error.reason)"))
    }
  }

  private static func verdict(_ status: Int?, _ exchange: HTTPExchange?) -> Outcome {
    let path = exchange?.path ?? "/"
    guard let status else { return .failure("\(path) brought no answer in HTTP") }
    return Probe.HTTPRequest.successes.contains(status)
      ? .success : .failure("\(path) answered \(status)")
  }
}

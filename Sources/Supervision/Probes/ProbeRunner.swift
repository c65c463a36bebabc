import Glibc
import Linux
import Policy

/// One probe of a worker, from the request to the answer. It never blocks. It belongs to the event
/// loop's thread, which watches `descriptor`, calls `proceed` when the descriptor is ready, and
/// calls `expire` when the probe's timeout has passed.
///
///     start ──▶ awaiting(.writable)   connecting
///          ├──▶ awaiting(.readable)   a command starts or runs, or a response is due
///          └──▶ ended(success or failure, with its reason)
public final class ProbeRunner {
  public enum Outcome: Hashable, Sendable {
    case success
    /// A clause that can follow the worker's name, for example `/healthz answered 503`.
    case failure(String)
    /// The daemon couldn't ask, for lack of descriptors, memory or processes. That says nothing
    /// about the worker. The text is as that of a failure.
    case unasked(String)
  }

  public enum Progress: Equatable, Sendable {
    case awaiting(Epoll.Interest)
    case ended(Outcome)
  }

  public let probe: Probe
  public private(set) var progress: Progress
  private var command: SideProgram?
  private var socket: Descriptor?
  private var exchange: HTTPExchange?

  /// The descriptor to watch while `progress` is `awaiting`.
  public var descriptor: Descriptor? { socket ?? command?.descriptor }
  /// The pid of the probe's command: a child of this process that nothing else may reap.
  public var commandPid: Int32? { command?.pid }

  /// Sends the request. A request that can't be sent counts as a failed probe. It starts a command,
  /// or connects.
  public init(starting probe: Probe, of worker: WorkerProcess) {
    self.probe = probe
    progress = .awaiting(.writable)
    switch probe.action {
    case .exec(let arguments):
      command = worker.runBeside(arguments, as: "probe", keepsOutput: false)
      progress = .awaiting(.readable)
      checkCommand()
    case .tcp(let host, let port): connect(host, port)
    case .http(let request):
      exchange = HTTPExchange(request)
      connect(request.host, request.port)
    }
  }

  /// Continues after `descriptor` became ready.
  public func proceed() {
    guard case .awaiting(let interest) = progress else { return }
    if let command {
      command.proceed()
      return checkCommand()
    }
    guard let socket else { return }
    if interest == .writable {
      didConnect(socket.connectionError)
    } else {
      receive(socket)
    }
  }

  /// Ends the probe because its timeout has passed.
  public func expire() {
    guard case .awaiting = progress else { return }
    // A status is an answer, even if the body of the response hasn't arrived in time.
    if let status = exchange?.status { return end(Self.verdict(status, exchange)) }
    let hang = command?.hang.map { "; its command has not started yet: \($0)" } ?? ""
    end(.failure("no answer within \(probe.timeout.components.seconds) s\(hang)"))
  }

  /// Ends a probe whose answer isn't needed any more, or can't be awaited.
  public func cancel() {
    if case .awaiting = progress { end(.unasked("cancelled")) }
  }

  private func end(_ outcome: Outcome) {
    command?.cancel()
    command = nil
    socket = nil
    progress = .ended(outcome)
  }

  // MARK: a command

  private func checkCommand() {
    switch command?.phase {
    case .ended(.exited(0)): end(.success)
    case .ended(.exited(let code)): end(.failure("its command exited with \(code)"))
    case .ended(.signaled(let signal)):
      end(.failure("its command was ended by \(Signals.text(signal))"))
    case .ended(.unknown): end(.failure("its command ended, exit status unknown"))
    case .failed(let error): end(error.isShortage ? .unasked("\(error)") : .failure("\(error)"))
    case .preparing, .starting, .running, .cancelled, nil: break
    }
  }

  // MARK: a connection

  private func connect(_ host: String, _ port: UInt16) {
    guard let address = InternetAddress(host, port) else {
      return end(.failure("`\(host)` is not a numeric address; write one, such as 127.0.0.1"))
    }
    let socket: Descriptor
    do throws(SystemCallError) {
      socket = try .socket(family: address.family, type: SOCK_STREAM, isBlocking: false)
    } catch {
      let reason = "socket: \(error.reason)"
      return end(error.isShortage ? .unasked(reason) : .failure(reason))
    }
    self.socket = socket
    let result = address.withPointer { target, length in
      kernelResult { Glibc.connect(socket.raw, target, length) }
    }
    if result == -EINPROGRESS {
      progress = .awaiting(.writable)
    } else {
      didConnect(-result)
    }
  }

  private func didConnect(_ code: Int32) {
    guard let socket else { return }
    if code != 0 { return end(.failure("port \(port): \(errorText(code))")) }
    // Repeated connects to a closed local port can hit TCP self-connect.
    if InternetAddress.localPort(of: socket) == port {
      return end(.failure("port \(port): connection refused"))
    }
    guard let exchange else { return end(.success) }
    // The send buffer of a new socket holds the whole request.
    let request = exchange.request
    let sent = socket.send(request, waits: true)
    guard sent == request.count else {
      return end(.failure("port \(port): can't send the request"))
    }
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
      let bytes = try socket.read(upTo: 16 << 10)
      exchange?.receive(bytes)
      if exchange?.isComplete == true || bytes.isEmpty {
        end(Self.verdict(exchange?.status, exchange))
      }
    } catch {
      if error.code == EAGAIN { return }
      end(exchange?.status.map { Self.verdict($0, exchange) } ?? .failure("\(error.reason)"))
    }
  }

  private static func verdict(_ status: Int?, _ exchange: HTTPExchange?) -> Outcome {
    let path = exchange?.path ?? "/"
    guard let status else { return .failure("\(path): the answer is not HTTP") }
    return exchange?.successes.contains(status) == true
      ? .success : .failure("\(path): status \(status)")
  }
}

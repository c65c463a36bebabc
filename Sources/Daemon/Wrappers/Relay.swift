import Control
import Glibc
import JSONLines
import Linux
import Policy

/// A request that is passed on to a wrapper's socket. It ends exactly once, with the wrapper's
/// answer or at its deadline. Then its socket is closed. The request carries the deadline, so that
/// a wrapper that was stopped meanwhile doesn't carry it out later.
final class Relay {
  private let loop: EventLoop
  private let name: String
  private var socket: Descriptor?
  private var watch: EventLoop.Token?
  private var timer: EventLoop.Token?
  private var framer = LineFramer()
  private var respond: ((ControlResponse) -> Void)?
  private let id: UInt64
  private let began = EventLoop.now
  /// Whether the request ends the wrapper's program. The wrapper ends with it, perhaps before it
  /// has answered.
  private let asksForEnd: Bool

  /// Sends the request. From here on the relay retains itself until it ends.
  ///
  /// - Parameters:
  ///   - path: the wrapper's socket.
  ///   - timeout: how long to wait for the answer. The wrapper must have begun by then too.
  @discardableResult
  init(
    _ request: ControlRequest, to path: String, jobs: LoopJobs, loop: EventLoop,
    timeout: Duration, then respond: @escaping (ControlResponse) -> Void
  ) {
    self.loop = loop
    name = request.worker ?? ""
    id = request.id
    asksForEnd = request.verb == .stop || request.verb == .terminate
    self.respond = respond
    var request = request
    request.expires = (EventLoop.now + timeout).nanoseconds
    timer = loop.after(timeout) { [self] in
      timer = nil
      fail("did not answer within \(timeout.text)")
    }
    connect(to: path, jobs, request)
  }

  /// The time limit for connecting to a socket.
  private static let connecting = Duration.seconds(5)

  /// Connects on another thread, because the path may be in a file system that doesn't answer.
  private func connect(to path: String, _ jobs: LoopJobs, _ request: ControlRequest) {
    jobs.run(about: "wrapper at \(path)", within: Self.connecting) {
      Result { () throws(SystemCallError) in try UnixSocket.connected(to: path, .stream) }
    } then: { [self] outcome in
      switch outcome {
      case .done(.success(let socket)): send(request, over: socket)
      case .done(.failure(let error)): fail("is not there: \(error)")
      case .overdue: fail("has a socket at \(path) that can't be reached")
      case .busy:
        // Another request is connecting to the same socket, or hangs there.
        if respond == nil { return }
        guard EventLoop.now - began < Self.connecting else {
          return fail("has a socket at \(path) that can't be reached")
        }
        loop.after(.milliseconds(5)) { [self] in connect(to: path, jobs, request) }
      }
    }
  }

  private func send(_ request: ControlRequest, over socket: Descriptor) {
    // The time of the request is over.
    if respond == nil { return }
    do {
      let line = try WireCodec.line(for: request)
      let sent = socket.send(line, waits: false)
      guard sent == line.count else { return fail("does not accept requests") }
      watch = try loop.watch(socket, .readable) { [self] _ in receive() }
      self.socket = socket
    } catch { fail("can't be asked: \(error)") }
  }

  private func receive() {
    // A read error counts as the end of the connection.
    let bytes = (try? socket?.read(upTo: 65536)) ?? []
    framer.append(bytes)
    // A line that is too long is no answer.
    let answer = try? framer.next()
    if !bytes.isEmpty, answer == nil { return }
    // A line that isn't a response is no answer either.
    let response = answer.flatMap { try? WireCodec.decode(ControlResponse.self, from: $0) }
    if let response { return finish(response) }
    guard asksForEnd else { return fail("has ended") }
    finish(ControlResponse(id: id, result: .done, text: "\(name) has ended"))
  }

  private func fail(_ reason: String) {
    finish(Self.failure(id, name: name, reason: reason))
  }

  static func failure(_ id: UInt64, name: String, reason: String) -> ControlResponse {
    ControlResponse(
      id: id, result: .failed, text: "\(name) can't be reached: its wrapper \(reason)")
  }

  private func finish(_ response: ControlResponse) {
    guard let respond else { return }
    self.respond = nil
    if let socket, let watch { loop.unwatch(socket, watch) }
    if let timer { loop.cancel(timer) }
    (watch, timer, socket) = (nil, nil, nil)
    respond(response)
  }
}

/// The functions of the daemon that `RegisteredWrappers` uses. Tests provide their own.
protocol WrapperHost {
  /// Sends a request to a wrapper's socket. `respond` is called once, within `timeout`.
  func ask(
    _ request: ControlRequest, at socket: String, timeout: Duration,
    then respond: @escaping (ControlResponse) -> Void)
  /// The pid of the process that made this connection, as the kernel reports it.
  func process(of client: ClientID) -> Int32?
  /// Sends SIGKILL to a process, if it started before `moment`. Returns false if no process has the
  /// pid, or another process has it.
  func kill(_ pid: Int32, startedBefore moment: Instant) throws(SystemCallError) -> Bool
  func log(_ priority: DaemonLog.Priority, _ text: String)
}

/// Reaches registered wrappers by their sockets, and by signals.
struct WrapperSockets: WrapperHost {
  let services: Services
  let control: ControlServer

  func ask(
    _ request: ControlRequest, at socket: String, timeout: Duration,
    then respond: @escaping (ControlResponse) -> Void
  ) {
    Relay(
      request, to: socket, jobs: services.jobs, loop: services.loop, timeout: timeout,
      then: respond)
  }

  func process(of client: ClientID) -> Int32? { control.process(of: client) }

  func kill(_ pid: Int32, startedBefore moment: Instant) throws(SystemCallError) -> Bool {
    // A process that can't be read has ended.
    guard let process = try? ProcessStat.read(pid), process.started <= moment.nanoseconds else {
      return false
    }
    return try process.identity.signal(SIGKILL)
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) { services.log(priority, text) }
}

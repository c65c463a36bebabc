import Control
import Glibc
import JSONLines
import Lifecycle
import Linux
import Policy

/// One request that is passed on to a wrapper's own socket. It ends exactly once: with the wrapper's
/// answer, at its deadline, or when it is cancelled; its socket is closed then. The request carries the
/// deadline, so that a wrapper which was stopped meanwhile does not carry it out later.
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
  /// The wrapper ends with its program, perhaps before it has answered.
  private let asksForEnd: Bool

  /// From here on it keeps itself until it ends.
  ///
  /// - Parameters:
  ///   - path: the wrapper's socket.
  ///   - patience: longest that the answer is awaited; the wrapper must have begun by then, too.
  @discardableResult
  init(
    _ request: ControlRequest, to path: String, jobs: LoopJobs, loop: EventLoop,
    patience: Duration, then respond: @escaping (ControlResponse) -> Void
  ) {
    self.loop = loop
    name = request.worker ?? ""
    id = request.id
    asksForEnd = request.verb == .stop || request.verb == .terminate
    self.respond = respond
    var request = request
    request.expires = (EventLoop.now + patience).nanoseconds
    timer = loop.after(patience) { [self] in
      timer = nil
      fail("did not answer within \(patience.spoken)")
    }
    connect(to: path, jobs, request)
  }

  /// Connecting to a socket may take this long.
  private static let connecting = Duration.seconds(5)

  /// The path may be in a file system that doesn't answer.
  private func connect(to path: String, _ jobs: LoopJobs, _ request: ControlRequest) {
    jobs.run(about: "wrapper at \(path)", within: Self.connecting) {
      Result { () throws(SystemCallError) in try UnixSocket.connected(to: path, .stream) }
    } then: { [self] outcome in
      switch outcome {
      case .done(.success(let socket)): send(request, over: socket)
      case .done(.failure(let error)): fail("is not there: \(error)")
      case .overdue: fail("has a socket at \(path) that can't be reached")
      case .busy:
        // Another request is on its way to it, or was, and hangs there.
        if respond == nil { return }
        guard EventLoop.now - began < Self.connecting else {
          return fail("has a socket at \(path) that can't be reached")
        }
        loop.after(.milliseconds(5)) { [self] in connect(to: path, jobs, request) }
      }
    }
  }

  private func send(_ request: ControlRequest, over socket: Descriptor) {
    // Cancelled, or overdue.
    if respond == nil { return }
    do {
      let line = try WireCodec.line(for: request)
      let sent = socket.send(line, waits: false)
      guard sent == line.count else { return fail("does not accept requests") }
      watch = try loop.watch(socket, .readable) { [self] _ in hear() }
      self.socket = socket
    } catch { fail("can't be asked: \(error)") }
  }

  /// Its answer isn't wanted any more.
  func cancel() {
    finish(ControlResponse(id: id, result: .failed, text: "the request to \(name) was cancelled"))
  }

  private func hear() {
    // An error counts as a hang-up.
    let bytes = (try? socket?.read(upTo: 65536)) ?? []
    framer.append(bytes)
    // A line that is too long is no answer either.
    let answer = try? framer.next()
    if !bytes.isEmpty, answer == nil { return }
    // Nor is a line that isn't a response.
    let response = answer.flatMap { try? WireCodec.decode(ControlResponse.self, from: $0) }
    if let response { return finish(response) }
    guard asksForEnd else { return fail("has ended") }
    finish(ControlResponse(id: id, result: .done, text: "\(name) has ended"))
  }

  private func fail(_ why: String) {
    finish(Self.failure(id, name: name, why: why))
  }

  static func failure(_ id: UInt64, name: String, why: String) -> ControlResponse {
    ControlResponse(
      id: id, result: .failed, text: "\(name) can't be reached: its wrapper \(why)")
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

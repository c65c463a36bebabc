import Policy
import Supervision
import WorkerProtocol

/// The outcome of a question to a worker.
enum ConversationReply {
  /// Each connection that was asked has answered.
  case answered
  /// No answer came in time.
  case silent
  /// The worker's run has ended.
  case runEnded
}

/// The messages between the daemon and one worker over `DORMOUSE_WORKER_SOCKET`, and the requests
/// that wait for an answer. It ends with the worker's run. It belongs to the event loop's thread.
final class WorkerTalk {
  typealias ConnectionID = WorkerSocket.ConnectionID

  let socket: WorkerSocket
  /// The number of stray answers of each kind.
  private var strays: [StrayAnswer: Int] = [:]
  /// The number of connections that the daemon has refused or closed.
  private var refusals = 0
  private let timers: any Timers
  private var open: [UInt64: OpenRequest] = [:]
  private var closed: [ClosedRequest] = []

  /// The number of closed requests that are remembered, to distinguish a late answer from an answer
  /// to no request.
  private static let maxClosed = 32

  private struct OpenRequest {
    var waiting: Set<ConnectionID>
    var answered: Set<ConnectionID> = []
    /// The number of connections that were asked and closed without an answer. Another connection
    /// may send the answer.
    var lost = 0
    /// Whether the daemon has closed one of the connections. A missing answer is then still
    /// reported as missing.
    var isShutOut = false
    var task: String?
    var timer: EventLoop.Token?
    let then: (ConversationReply) -> Void
    var isAnswered: Bool { waiting.isEmpty && !answered.isEmpty }
  }

  private struct ClosedRequest {
    var id: UInt64
    var answered: Set<ConnectionID>
    /// Whether the request needs an answer. A `done` for a message that needs none is no mistake,
    /// and isn't logged.
    var wantsAnswer: Bool
  }

  init(_ socket: WorkerSocket, timers: any Timers) {
    self.socket = socket
    self.timers = timers
  }

  // MARK: to the worker

  /// Sends a message to every connection, and waits for no answer.
  func post(_ message: DaemonMessage) {
    for connection in socket.connectionIDs { _ = socket.send(message, to: connection) }
  }

  /// Sends a message with an id to every connection. The worker may answer it although no answer is
  /// needed.
  func post(_ id: UInt64, _ message: DaemonMessage) {
    post(message)
    remember(ClosedRequest(id: id, answered: [], wantsAnswer: false))
  }

  /// Asks every connection. `then` is called once, when each of them has answered, when `timeout`
  /// has passed or at the end of the run; or never after `close`.
  ///
  /// - Returns: false, without a call of `then`, if there is no connection to ask.
  func ask(
    _ request: DaemonMessage.Request, id: UInt64, within limit: Duration, timeout: Duration?,
    then: @escaping (ConversationReply) -> Void
  ) -> Bool {
    let message = DaemonMessage.request(
      id: id, deadlineSeconds: max(0, limit.roundedSeconds), request)
    let asked = socket.connectionIDs.filter { socket.send(message, to: $0) }
    if asked.isEmpty { return false }
    var question = OpenRequest(waiting: Set(asked), then: then)
    if case .taskExpired(let task) = request { question.task = task }
    question.timer = timeout.map { timeout in
      timers.after(timeout) { [weak self] in self?.conclude(id, .silent) }
    }
    open[id] = question
    return true
  }

  /// Closes a request whose answer the caller doesn't wait for any more. It isn't called back.
  func close(_ id: UInt64, wantsAnswer: Bool = true) {
    guard let request = open.removeValue(forKey: id) else { return }
    if let timer = request.timer { timers.cancel(timer) }
    remember(ClosedRequest(id: id, answered: request.answered, wantsAnswer: wantsAnswer))
  }

  private func conclude(_ id: UInt64, _ reply: ConversationReply, wantsAnswer: Bool = true) {
    guard let request = open[id] else { return }
    close(id, wantsAnswer: wantsAnswer)
    request.then(reply)
  }

  /// Calls back all open requests, because the worker's run has ended.
  func end() {
    for id in open.keys.sorted() { conclude(id, .runEnded) }
  }

  private func remember(_ request: ClosedRequest) {
    closed.append(request)
    if closed.count > Self.maxClosed { closed.removeFirst() }
  }

  // MARK: from the worker

  /// Handles a `done`.
  ///
  /// - Returns: nil if it answers an open request, or a message that needs no answer. Otherwise the
  ///   kind of stray answer, which the caller logs.
  func answered(_ id: UInt64, by connection: ConnectionID) -> StrayAnswer? {
    guard var request = open[id] else {
      guard let past = closed.lastIndex(where: { $0.id == id }) else { return .unknown }
      if !closed[past].wantsAnswer { return nil }
      return closed[past].answered.insert(connection).inserted ? .late : .repeated
    }
    if request.waiting.remove(connection) == nil {
      guard request.lost > 0, !request.answered.contains(connection) else { return .repeated }
      request.lost -= 1
    }
    request.answered.insert(connection)
    open[id] = request
    if request.isAnswered { conclude(id, .answered) }
    return nil
  }

  /// Handles `endTask`, which is an answer to `taskExpired` as well.
  func didEndTask(_ task: String) {
    // Each request is looked up just before its turn: the callback of one may end or begin others.
    for id in open.keys.sorted() where open[id]?.task == task {
      conclude(id, .answered, wantsAnswer: false)
    }
  }

  /// A connection has closed. No request waits for it any longer.
  func didDisconnect(_ connection: ConnectionID, byItself: Bool) {
    for id in open.keys.sorted() {
      guard var request = open[id], request.waiting.remove(connection) != nil else { continue }
      request.lost += 1
      if !byItself { request.isShutOut = true }
      open[id] = request
      if request.isAnswered { conclude(id, .answered) }
    }
  }

  /// Whether the worker has closed all connections that were asked, without an answer. Then no
  /// missing answer can be reported.
  func isAbandoned(_ id: UInt64) -> Bool {
    guard let request = open[id] else { return false }
    return request.waiting.isEmpty && request.answered.isEmpty && !request.isShutOut
  }

  /// Counts a stray answer.
  ///
  /// - Returns: whether this one is logged: the first, second, fourth, eighth and so on.
  func count(_ kind: StrayAnswer) -> Bool {
    strays[kind, default: 0] += 1
    return isPowerOfTwo(strays[kind, default: 0])
  }

  func countRefusal() -> Bool {
    refusals += 1
    return isPowerOfTwo(refusals)
  }

  /// The number of connections, for `status`; nil if there is none.
  var connectionCount: Int? {
    let count = socket.connectionIDs.count
    return count == 0 ? nil : count
  }

  /// The answers and connections that had no effect, as a sentence such as `answers without effect:
  /// 2 late, 1 repeated, 3 to unknown requests`; nil if there were none.
  var withoutEffect: String? {
    let answers = StrayAnswer.allCases.compactMap { kind in
      strays[kind].map { "\($0) \(kind.rawValue)" }
    }.joined(separator: ", ")
    var texts: [String] = []
    if !answers.isEmpty { texts.append("answers without effect: \(answers)") }
    if refusals > 0 { texts.append("connections refused or closed by the daemon: \(refusals)") }
    return texts.isEmpty ? nil : texts.joined(separator: "; ")
  }

  private func isPowerOfTwo(_ count: Int) -> Bool { count & (count - 1) == 0 }
}

/// An answer of a worker that had no effect.
enum StrayAnswer: String, CaseIterable {
  case late, repeated
  case unknown = "to unknown requests"

  func sentence(_ id: UInt64) -> String {
    switch self {
    case .late: "its answer to request \(id) came too late"
    case .repeated: "it answered request \(id) a second time"
    case .unknown: "it answered request \(id), which was never sent"
    }
  }
}

extension Duration {
  /// The duration in seconds, rounded to milliseconds.
  var roundedSeconds: Double { (seconds * 1000).rounded() / 1000 }
}

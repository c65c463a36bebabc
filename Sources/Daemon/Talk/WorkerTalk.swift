import Lifecycle
import Linux
import Policy
import Supervision
import WorkerProtocol

/// The messages between the daemon and one worker over `DORMOUSE_WORKER_SOCKET`, as far as a request is still
/// open. It ends with the worker's run.
final class WorkerTalk {
  typealias ConnectionID = WorkerSocket.ConnectionID

  let socket: WorkerSocket
  private(set) var strays = StrayAnswers()
  /// Connections that were turned away, or closed by us.
  private(set) var refusals = 0
  private var open: [UInt64: OpenRequest] = [:]
  private var closed: [ClosedRequest] = []

  /// Closed requests are kept to distinguish a late answer from an invented one.
  private static let maxClosed = 32

  private struct OpenRequest {
    var waiting: Set<ConnectionID>
    var answered: Set<ConnectionID> = []
    /// Connections that were asked and closed without an answer: another connection may send it.
    var lost = 0
    /// One of these was closed by us: no wonder that it doesn't answer, and no excuse.
    var isShutOut = false
    var task: String?
    var then: () -> Void
    var isAnswered: Bool { waiting.isEmpty && !answered.isEmpty }
  }

  private struct ClosedRequest {
    var id: UInt64
    var answered: Set<ConnectionID>
    /// It wanted an answer: a `done` for what didn't is no mistake worth a note.
    var wantsAnswer: Bool
  }

  init(_ socket: WorkerSocket) { self.socket = socket }

  // MARK: to the worker

  /// Sends a message to every connection, and waits for no answer.
  func post(_ message: DaemonMessage) {
    for connection in socket.connectionIDs { _ = socket.send(message, to: connection) }
  }

  /// The same with an id, which may come back in a needless answer.
  func post(_ id: UInt64, _ message: DaemonMessage) {
    post(message)
    remember(ClosedRequest(id: id, answered: [], wantsAnswer: false))
  }

  /// Asks every connection. `then` is called at most once, when each of them has answered; a caller that
  /// doesn't wait any longer calls `close`. False: there is no connection to ask.
  func ask(
    _ request: DaemonMessage.Request, id: UInt64, within limit: Duration,
    then: @escaping () -> Void
  ) -> Bool {
    let message = DaemonMessage.request(
      id: id, deadlineSeconds: max(0, limit.milliseconds), request)
    let asked = socket.connectionIDs.filter { socket.send(message, to: $0) }
    if asked.isEmpty { return false }
    open[id] = OpenRequest(waiting: Set(asked), then: then)
    if case .taskExpired(let task) = request { open[id]?.task = task }
    return true
  }

  /// The caller doesn't wait for this answer any more.
  func close(_ id: UInt64, wantsAnswer: Bool = true) {
    guard let request = open.removeValue(forKey: id) else { return }
    remember(ClosedRequest(id: id, answered: request.answered, wantsAnswer: wantsAnswer))
  }

  private func remember(_ request: ClosedRequest) {
    closed.append(request)
    if closed.count > Self.maxClosed { closed.removeFirst() }
  }

  // MARK: from the worker

  /// A `done`. What it is worth, where it isn't the answer to an open request; the caller notes it.
  func answered(_ id: UInt64, by connection: ConnectionID) -> StrayAnswers.Kind? {
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
    concludeIfAnswered(id, request)
    return nil
  }

  /// `endTask` is an answer to `taskExpired` as well.
  func taskHasEnded(_ task: String) {
    // Looked up one after the other: what follows on one answer may end, or begin, others.
    for id in open.keys.sorted() {
      guard let request = open[id], request.task == task else { continue }
      close(id, wantsAnswer: false)
      request.then()
    }
  }

  /// A connection has closed: no request waits for it any longer.
  func hasLeft(_ connection: ConnectionID, byItself: Bool) {
    for id in open.keys.sorted() {
      guard var request = open[id], request.waiting.remove(connection) != nil else { continue }
      request.lost += 1
      if !byItself { request.isShutOut = true }
      open[id] = request
      concludeIfAnswered(id, request)
    }
  }

  /// All connections that were asked have closed without an answer, so no missing answer can be reported.
  func isAbandoned(_ id: UInt64) -> Bool {
    guard let request = open[id] else { return false }
    return request.waiting.isEmpty && request.answered.isEmpty && !request.isShutOut
  }

  private func concludeIfAnswered(_ id: UInt64, _ request: OpenRequest) {
    guard request.isAnswered else { return }
    close(id)
    request.then()
  }

  /// Whether this one is worth a line in the log: the first, the second, the fourth …
  func count(_ kind: StrayAnswers.Kind) -> Bool { isPowerOfTwo(strays.count(kind)) }

  func countRefusal() -> Bool {
    refusals += 1
    return isPowerOfTwo(refusals)
  }

  /// For `status`; nil where there is no connection.
  var connectionCount: Int? {
    let count = socket.connectionIDs.count
    return count == 0 ? nil : count
  }

  /// What had no effect; nil: there was nothing of the kind.
  var sentence: String? {
    let refused =
      refusals == 0 ? nil : "connections refused or closed by the daemon: \(refusals)"
    let parts = [strays.sentence, refused].compactMap { $0 }
    return parts.isEmpty ? nil : parts.joined(separator: "; ")
  }

  private func isPowerOfTwo(_ count: Int) -> Bool { count & (count - 1) == 0 }
}

/// Answers without effect, counted over a run.
struct StrayAnswers: Hashable {
  enum Kind { case late, repeated, unknown }

  private(set) var late = 0
  private(set) var repeated = 0
  private(set) var unknown = 0

  /// How many of that kind there have been.
  mutating func count(_ kind: Kind) -> Int {
    switch kind {
    case .late:
      late += 1
      return late
    case .repeated:
      repeated += 1
      return repeated
    case .unknown:
      unknown += 1
      return unknown
    }
  }

  /// `answers without effect: 2 late, 1 repeated, 3 to unknown requests`; nil: there were none.
  var sentence: String? {
    var parts: [String] = []
    if late > 0 { parts.append("\(late) late") }
    if repeated > 0 { parts.append("\(repeated) repeated") }
    if unknown > 0 { parts.append("\(unknown) to unknown requests") }
    guard !parts.isEmpty else { return nil }
    return "answers without effect: " + parts.joined(separator: ", ")
  }
}

extension Duration {
  /// In seconds, rounded to milliseconds.
  var milliseconds: Double { (seconds * 1000).rounded() / 1000 }
}

extension StrayAnswers.Kind {
  func sentence(_ id: UInt64) -> String {
    switch self {
    case .late: "its answer to request \(id) came too late"
    case .repeated: "it answered request \(id) a second time"
    case .unknown: "it answered request \(id), which was never sent"
    }
  }
}

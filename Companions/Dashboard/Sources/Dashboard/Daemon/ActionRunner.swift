import Control

/// Carries out the actions of buttons. Each uses a connection of its own, which is closed after the
/// answer.
struct ActionRunner: Sendable {
  let path: String
  let isNamed: Bool
  /// The threads of requests. A request waits until its action is done, which may take some
  /// seconds.
  private let pool = BlockingPool(threads: 6, maxCalls: 24)
  private static let timeout = Duration.seconds(60)

  init(path: String, isNamed: Bool) {
    self.path = path
    self.isNamed = isNamed
  }

  /// The verbs that a page may send, by the name in its address. None of them ends a worker.
  static let verbs: [String: ControlRequest.Verb] = [
    "wake": .wake, "hibernate": .hibernate, "suspend": .suspend, "foreground": .foreground,
    "background": .background, "warn": .warn, "trim": .trim, "fill": .fill,
    "protect": .protect, "unprotect": .unprotect,
  ]

  struct Outcome: Encodable, Sendable {
    var isDone: Bool
    /// The result, as one sentence.
    var text: String
    /// The status of HTTP.
    var status = 200

    private enum CodingKeys: CodingKey { case isDone, text }
  }

  func perform(_ verb: ControlRequest.Verb, worker: String) async -> Outcome {
    do {
      return try await pool.run { ask(verb, worker) }
    } catch {
      return Outcome(
        isDone: false, text: "24 requests are under way already; try again later", status: 503)
    }
  }

  /// Returns a worker's snapshot with its content.
  func snapshot(of worker: String) async throws -> SnapshotReport? {
    try await pool.run {
      var client = try ControlClient(connectingTo: path, isNamed: isNamed)
      let id = try client.send(.status, worker: worker) { $0.withSnapshot = true }
      return try client.response(to: id, timeout: .seconds(5)).workers?.first?.snapshot
    }
  }

  private func ask(_ verb: ControlRequest.Verb, _ worker: String) -> Outcome {
    do throws(ControlError) {
      var client = try ControlClient(connectingTo: path, isNamed: isNamed)
      let response = try client.perform(verb, worker: worker, timeout: Self.timeout)
      return Outcome(
        isDone: response.result == .done, text: response.text, status: Self.status(response.result))
    } catch {
      guard case .timedOut = error else {
        return Outcome(isDone: false, text: error.description, status: 503)
      }
      return Outcome(
        isDone: false,
        text: "the daemon hasn't answered within 60 s; the request may still have an effect",
        status: 504)
    }
  }

  private static func status(_ result: ControlResponse.Result) -> Int {
    switch result {
    case .done, .event: 200
    case .refused: 409
    case .failed: 500
    case .unknownWorker: 404
    case .badRequest: 400
    }
  }
}

import Control
import Synchronization

/// The one connection over which the daemon is polled for all pages. Its calls wait, so they run on
/// a thread of `BlockingPool`.
final class DaemonLink: Sendable {
  private let path: String
  private let isNamed: Bool
  private let parts = Mutex(Parts())

  /// - Parameter isNamed: True if the user has named the socket, as for `ControlClient`.
  init(path: String, isNamed: Bool) {
    self.path = path
    self.isNamed = isNamed
  }

  /// The reports that a poll asks for, in addition to the overview.
  struct Wishes: Sendable {
    /// The workers whose page is open.
    var watched: [String] = []
    var snapshots: [String] = []
  }

  enum Outcome: Sendable {
    case answered(Answer)
    /// There is no daemon, or none that may be used; the text is a sentence.
    case absent(String)
    /// The daemon hasn't answered for this time. The next call continues the same poll.
    case slow(Duration)
  }

  private struct Parts: ~Copyable {
    var client: ControlClient?
    var poll: Poll?
    /// The number of polls since the ladder was read: it changes only with the configuration.
    var ladderAge = 0
  }

  /// Requests that were sent together, and the answers that have arrived.
  private struct Poll {
    var began = ContinuousClock.now
    var requests: [(id: UInt64, what: Question)] = []
    var answer = Answer()
  }

  fileprivate enum Question {
    case workers, ranking, policy
    case status(String)
    case explanation(String)
  }

  /// Polls the daemon once. It returns within `timeout`, to which the time to connect is added.
  func poll(_ wishes: Wishes, timeout: Duration = .seconds(2)) -> Outcome {
    parts.withLock { parts in
      do throws(ControlError) {
        if parts.client == nil {
          parts.client = try ControlClient(connectingTo: path, isNamed: isNamed)
          parts.poll = nil
          parts.ladderAge = 0
        }
        try Self.ask(&parts, wishes)
        guard try Self.receive(&parts, until: ContinuousClock.now + timeout) else {
          return .slow(ContinuousClock.now - (parts.poll?.began ?? .now))
        }
        let answer = parts.poll?.answer ?? Answer()
        parts.poll = nil
        return .answered(answer)
      } catch {
        parts.client = nil
        parts.poll = nil
        return .absent(error.description)
      }
    }
  }

  /// Closes the connection until the next poll.
  func close() {
    parts.withLock { parts in
      parts.client = nil
      parts.poll = nil
    }
  }

  private static func ask(
    _ parts: inout Parts, _ wishes: Wishes
  ) throws(ControlError) {
    guard parts.poll == nil else { return }
    var questions: [Question] = [.workers, .ranking]
    if parts.ladderAge % 30 == 0 { questions.append(.policy) }
    parts.ladderAge += 1
    questions += Set(wishes.watched + wishes.snapshots).sorted().map { .status($0) }
    questions += wishes.watched.map { .explanation($0) }
    var poll = Poll()
    for question in questions {
      let id =
        switch question {
        case .workers: try parts.client?.send(.ps)
        case .ranking: try parts.client?.send(.explain)
        case .policy: try parts.client?.send(.policy)
        case .status(let name): try parts.client?.send(.status, worker: name)
        case .explanation(let name): try parts.client?.send(.explain, worker: name)
        }
      if let id { poll.requests.append((id, question)) }
    }
    parts.poll = poll
  }

  /// Reads answers. The result is false if not all have arrived in time.
  private static func receive(
    _ parts: inout Parts, until deadline: ContinuousClock.Instant
  ) throws(ControlError) -> Bool {
    while let next = parts.poll?.requests.first {
      let response: ControlResponse?
      do throws(ControlError) {
        let left = max(deadline - ContinuousClock.now, .zero)
        response = try parts.client?.response(to: next.id, timeout: left)
      } catch {
        guard case .timedOut = error else { throw error }
        return false
      }
      parts.poll?.requests.removeFirst()
      if let response { parts.poll?.answer.merge(response, to: next.what) }
    }
    return true
  }
}

extension Answer {
  fileprivate mutating func merge(_ response: ControlResponse, to question: DaemonLink.Question) {
    switch question {
    case .workers:
      daemon = response.daemon
      workers = response.workers ?? []
    case .ranking: ranking = response.ranking
    case .policy:
      ladder = ["warning", "urgent", "critical"].compactMap { level in
        response.policy?.first { $0.key == "ladder.\(level)" }
          .map { LadderLevel(level, parsing: $0.value) }
      }
    case .status(let name): details[name] = .some(response.workers?.first)
    case .explanation(let name): explanations[name] = response.explanation
    }
  }
}

import Policy
import WorkerProtocol

/// The outcome of a question to a worker.
enum ConversationReply {
  /// Each connection that was asked has answered.
  case answered
  /// The time for an answer is over.
  case silent
  /// The worker's run has ended.
  case runEnded
}

/// Questions to a worker that wait for an answer: each is called back once, or withdrawn. Belongs to the loop's
/// thread.
final class OpenQuestions {
  private let timers: any Timers
  private var open: [UInt64: Question] = [:]

  private struct Question {
    var timer: EventLoop.Token?
    let then: (ConversationReply) -> Void
  }

  init(_ timers: any Timers) { self.timers = timers }

  /// False: there is no connection to ask, and `then` isn't called.
  func ask(
    _ request: DaemonMessage.Request, over talk: WorkerTalk, number: UInt64,
    within limit: Duration, patience: Duration?, then: @escaping (ConversationReply) -> Void
  ) -> Bool {
    let isAsked = talk.ask(request, id: number, within: limit) { [weak self] in
      self?.conclude(number, .answered)
    }
    guard isAsked else { return false }
    var question = Question(then: then)
    if let patience {
      question.timer = timers.after(patience) { [weak self, weak talk] in
        talk?.close(number)
        self?.conclude(number, .silent)
      }
    }
    open[number] = question
    return true
  }

  private func conclude(_ number: UInt64, _ reply: ConversationReply) {
    guard let question = remove(number) else { return }
    question.then(reply)
  }

  /// It isn't called back any more.
  func withdraw(_ number: UInt64) { _ = remove(number) }

  private func remove(_ number: UInt64) -> Question? {
    guard let question = open.removeValue(forKey: number) else { return nil }
    if let timer = question.timer { timers.cancel(timer) }
    return question
  }

  /// The run is over.
  func end() {
    for number in open.keys.sorted() { conclude(number, .runEnded) }
  }
}

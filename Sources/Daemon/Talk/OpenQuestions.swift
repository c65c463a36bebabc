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

/// The questions to a worker that wait for an answer. Each question is called back once, or
/// withdrawn. It belongs to the event loop's thread.
final class OpenQuestions {
  private let timers: any Timers
  private var open: [UInt64: Question] = [:]

  private struct Question {
    var timer: EventLoop.Token?
    let then: (ConversationReply) -> Void
  }

  init(_ timers: any Timers) { self.timers = timers }

  /// Asks a question.
  ///
  /// - Returns: false if there is no connection to ask; then `then` isn't called.
  func ask(
    _ request: DaemonMessage.Request, over talk: WorkerTalk, number: UInt64,
    within limit: Duration, timeout: Duration?, then: @escaping (ConversationReply) -> Void
  ) -> Bool {
    let isAsked = talk.ask(request, id: number, within: limit) { [weak self] in
      self?.conclude(number, .answered)
    }
    guard isAsked else { return false }
    var question = Question(then: then)
    if let timeout {
      question.timer = timers.after(timeout) { [weak self, weak talk] in
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

  /// Removes a question, which isn't called back any more.
  func withdraw(_ number: UInt64) { _ = remove(number) }

  private func remove(_ number: UInt64) -> Question? {
    guard let question = open.removeValue(forKey: number) else { return nil }
    if let timer = question.timer { timers.cancel(timer) }
    return question
  }

  /// Calls back all open questions, because the worker's run has ended.
  func end() {
    for number in open.keys.sorted() { conclude(number, .runEnded) }
  }
}

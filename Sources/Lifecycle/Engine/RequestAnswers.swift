extension Engine {
  /// The worker is in the state that its goal names: every request for it is answered.
  mutating func fulfillGoal(_ index: Int) {
    let worker = workers[index]
    let deeper = worker.state == .hibernated && worker.goal?.destination == .suspended
    concludeGoal(
      index, code: .done, text: "\(worker.id) is \(deeper ? "already " : "")\(worker.state.text)")
  }

  mutating func failGoal(_ index: Int, _ text: String) {
    concludeGoal(index, code: .failed, text: text)
  }

  /// Drops the goal, and answers every request for it.
  mutating func concludeGoal(_ index: Int, code: Answer.Code, text: String) {
    guard let goal = workers[index].goal else { return }
    workers[index].goal = nil
    decisions += 1
    for request in goal.requests { emit(.answer(request, Answer(code, text))) }
  }

  mutating func answerStarts(_ index: Int, code: Answer.Code, text: String) {
    for request in workers[index].starts { emit(.answer(request, Answer(code, text))) }
    workers[index].starts = []
  }

  mutating func failWarns(_ index: Int, _ text: String) {
    for request in workers[index].warns { emit(.answer(request, Answer(.failed, text))) }
    workers[index].warns = []
  }
}

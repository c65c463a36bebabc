import Policy

// Shadow mode: what the policy alone would do is logged and not done. Requests are carried out.

extension Engine {
  func isShadow(_ index: Int) -> Bool {
    isShadow(workers[index])
  }

  func isShadow(_ worker: WorkerRecord) -> Bool {
    if let mode = worker.modeByRequest { return mode == .shadow }
    return policy.mode == .shadow || worker.policy.mode == .shadow
  }

  mutating func acceptMode(_ index: Int, _ request: Request) {
    let mode: LifecyclePolicy.Mode = request.verb == .shadow ? .shadow : .enforce
    workers[index].modeByRequest = mode
    workers[index].notes = []
    workers[index].shadow = ShadowRecord()
    let how =
      mode == .shadow
      ? "shadow mode; decisions are logged, not applied" : "the policy applies again"
    emit(.answer(request.id, Answer(.done, "\(request.worker): \(how)")))
  }

  /// Reports what would have been done with the worker: `been suspended: …`.
  mutating func reportImagined(_ index: Int, _ text: String) {
    let name = workers[index].id
    emit(.wouldHave(name, "\(name) would have \(text)"))
  }

  /// Reports a step once in the worker's state, and returns whether it has done so. `move` clears
  /// the record of it.
  @discardableResult
  mutating func reportOnce(_ index: Int, step: ShadowNotes, text: String) -> Bool {
    guard !workers[index].notes.contains(step) else { return false }
    workers[index].notes.insert(step)
    reportImagined(index, text)
    return true
  }
}

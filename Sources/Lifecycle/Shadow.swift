import Policy

// Shadow mode: what the policy alone would do is told and not done. What people ask for is done.

extension Engine {
  func isShadow(_ index: Int) -> Bool {
    policy.mode == .shadow || workers[index].policy.mode == .shadow
  }

  /// Tells it once in this state; `move` forgets the notes.
  mutating func note(_ index: Int, _ step: ShadowNotes, _ text: String) {
    guard workers[index].notes.insert(step).inserted else { return }
    emit(.wouldHave(workers[index].id, "\(workers[index].id) \(text)"))
  }
}

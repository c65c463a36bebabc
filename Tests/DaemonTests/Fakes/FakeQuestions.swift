import Policy
import Supervision

@testable import Daemon

/// A worker that is asked as a probe asks, and answers when a test says so.
final class FakeQuestions: QuestionHost {
  var watchesTraffic = false
  /// Whether something came in since the last look.
  var hasTraffic = false
  private(set) var asked: [Policy.Probe] = []
  private(set) var dropped = 0
  private(set) var active = 0
  private(set) var looks = 0
  private(set) var ended = 0
  private var answer: ((ProbeRunner.Outcome) -> Void)?

  func ask(
    _ probe: Policy.Probe, then answer: @escaping (ProbeRunner.Outcome) -> Void
  ) -> () -> Void {
    asked.append(probe)
    self.answer = answer
    return { [weak self] in
      self?.answer = nil
      self?.dropped += 1
    }
  }

  func answer(_ outcome: ProbeRunner.Outcome) {
    let waiting = answer
    answer = nil
    waiting?(outcome)
  }

  func lookAtTraffic(then: @escaping (_ hasTraffic: Bool) -> Void) {
    looks += 1
    let found = hasTraffic
    hasTraffic = false
    then(found)
  }

  func wasActive() { active += 1 }
  func questionHasEnded() { ended += 1 }
}

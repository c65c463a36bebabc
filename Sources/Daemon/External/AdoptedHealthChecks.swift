import Control
import Policy
import PolicyFile
import Supervision

// These functions handle health checks that are answered while an adopted worker sleeps. The
// request for its adoption names them.

extension AdoptionSpecification {
  func answers() throws(AdoptionRefusal) -> [AsleepAnswer] {
    var answers: [AsleepAnswer] = []
    for text in healthChecks ?? [] {
      do throws(AsleepAnswerError) {
        let answer = try AsleepAnswer(text: text)
        if !answers.contains(answer) { answers.append(answer) }
      } catch { throw .malformed("not adopted: \(error)") }
    }
    return answers
  }
}

extension WorkerRecord {
  /// Records what the request for the worker's adoption has chosen, except the policy.
  mutating func keepAdoption(of configuration: WorkerConfiguration) {
    wakeWith = configuration.wakeWith
    healthChecks = configuration.healthChecksWhileAsleep.map(\.text)
  }

  func giveBackAdoption(to configuration: inout WorkerConfiguration) {
    configuration.wakeWith = wakeWith
    configuration.healthChecksWhileAsleep = healthChecks.compactMap {
      // If a recorded check can't be read, it wakes the worker, as any connection does.
      try? AsleepAnswer(text: $0)
    }
  }
}

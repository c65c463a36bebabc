import Policy

// `watchdog.answer`: the time from a request that must be answered to its answer, for workers that
// can answer. It continues when the request is finished without an answer
// (`background.shed_deadline`). It stands still while the worker is frozen, and starts a full
// interval when the worker is thawed.

struct Unanswered: Codable, Sendable, Equatable {
  var kind: Directive.ShedKind
  var until: ExtensibleDeadline
}

extension Engine {
  mutating func startAnswerWatchdog(_ index: Int, _ kind: Directive.ShedKind) {
    guard workers[index].profile.canAnswer else { return }
    let until = now + workers[index].policy.watchdog.answer
    workers[index].run.unanswered = Unanswered(kind: kind, until: ExtensibleDeadline(until))
  }

  mutating func restartAnswerWatchdog(_ index: Int) {
    guard let unanswered = workers[index].run.unanswered else { return }
    startAnswerWatchdog(index, unanswered.kind)
  }

  /// Handles a missed deadline. Returns whether the worker's termination has begun.
  mutating func checkAnswer(_ index: Int) -> Bool {
    guard let missed = workers[index].run.unanswered, now >= missed.until.until else {
      return false
    }
    workers[index].run.unanswered = nil
    let rules = workers[index].policy.watchdog
    let text = "no answer to \(missed.kind.rawValue) within watchdog.answer, \(rules.answer.text)"
    guard rules.onTimeout == .terminate else {
      workers[index].lastMiss = Miss(at: now, text: text)
      emit(.watchdogMissed(workers[index].id, text))
      return false
    }
    return endBroken(index, text, by: .stop)
  }
}

// A liveness probe is a watchdog outside the engine. Its failure ends the worker whatever
// `watchdog.on_timeout` says: a configuration with a probe wants that.
extension Engine {
  mutating func recordUnhealthy(_ index: Int, _ reason: String) {
    let state = workers[index].state
    guard state == .foreground || state == .background else { return }
    endBroken(index, reason, by: .stop)
  }
}

extension WorkerRecord {
  var answerDeadline: Instant? {
    state == .foreground || state == .background ? run.unanswered?.until.until : nil
  }
}

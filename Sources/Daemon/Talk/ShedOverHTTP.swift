import Policy
import Supervision

/// `shed: { http: … }`: sends the request as a probe does, with the shed's deadline. Its connection doesn't
/// count as activity: traffic before the request counts, and traffic that comes with it doesn't. The worker
/// isn't suspended before the connection is closed: a connection in its queue would wake it.
///
/// One for one run of a worker. Belongs to the loop's thread.
final class ShedOverHTTP {
  private let timers: any Timers
  private let questions: RunQuestions
  /// Requests whose connection the worker may still hold.
  private var openRequests = 0
  /// One of them has been answered, and a look takes what came with it.
  private(set) var isSettling = false

  init(_ timers: any Timers, _ questions: RunQuestions) {
    self.timers = timers
    self.questions = questions
  }

  /// A request is under way, or the worker hasn't closed its connection yet.
  var isAsking: Bool { openRequests > 0 }

  /// `answered` is called once, never before this returns or after `drop`.
  ///
  /// - Returns: nil: the time is over, and nothing is asked.
  func ask(
    _ request: Policy.Probe.HTTPRequest, until deadline: Instant,
    answered: @escaping (ProbeRunner.Outcome) -> Void
  ) -> ShedRequest? {
    guard deadline > timers.now else { return nil }
    let out = ShedRequest()
    guard questions.watchesTraffic else {
      put(request, out, until: deadline, answered)
      return out
    }
    // What came before the request counts.
    questions.lookAtTraffic { [weak self] hasTraffic in
      guard let self else { return }
      if hasTraffic { questions.wasActive() }
      if !out.isDropped { put(request, out, until: deadline, answered) }
    }
    return out
  }

  private func put(
    _ request: Policy.Probe.HTTPRequest, _ out: ShedRequest, until deadline: Instant,
    _ answered: @escaping (ProbeRunner.Outcome) -> Void
  ) {
    // The time may be over; then the probe fails at once.
    let timeout = max(deadline - timers.now, .milliseconds(1))
    openRequests += 1
    out.dropQuestion = questions.ask(Policy.Probe(.http(request), timeout: timeout)) {
      [weak self] outcome in
      out.dropQuestion = nil
      self?.waitOutOwnTraffic()
      if !out.isDropped { answered(outcome) }
    }
  }

  /// The answer isn't waited for any more.
  ///
  /// - Returns: whether the request was out.
  func drop(_ request: ShedRequest) -> Bool {
    request.isDropped = true
    guard let dropQuestion = request.dropQuestion else { return false }
    request.dropQuestion = nil
    dropQuestion()
    waitOutOwnTraffic()
    return true
  }

  /// The connection is closed here; the worker lets go of it in a moment.
  private func waitOutOwnTraffic() {
    timers.after(LivenessMonitor.settling) { [weak self] in
      guard let self, isAsking else { return }
      guard questions.watchesTraffic else { return ownTrafficIsOver() }
      isSettling = true
      questions.lookAtTraffic { [weak self] _ in
        if let self, isAsking { ownTrafficIsOver() }
      }
    }
  }

  private func ownTrafficIsOver() {
    openRequests -= 1
    isSettling = false
    if openRequests == 0 { questions.questionHasEnded() }
  }
}

/// One such request.
final class ShedRequest {
  fileprivate var dropQuestion: (() -> Void)?
  fileprivate var isDropped = false
}

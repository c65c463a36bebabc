import Policy
import Supervision

/// Sends a worker the request of `shed: { http: … }`, as a probe does, with the shed's deadline.
/// Its connection doesn't count as activity: traffic before the request counts, and traffic that
/// comes with it doesn't. The worker isn't suspended before the connection is closed, because a
/// connection in the worker's queue would wake it.
///
/// There is one for each run of a worker. It belongs to the event loop's thread.
final class ShedOverHTTP {
  private let timers: any Timers
  private let questions: RunQuestions
  /// The number of requests whose connection the worker may still have open.
  private var openRequests = 0
  /// Whether a request has been answered and the traffic that came with it is being read, so that
  /// it doesn't count as activity.
  private(set) var isDrainingTraffic = false

  init(_ timers: any Timers, _ questions: RunQuestions) {
    self.timers = timers
    self.questions = questions
  }

  /// Whether a request is under way, or the worker hasn't closed its connection yet.
  var isAsking: Bool { openRequests > 0 }

  /// Sends a request. `answered` is called at most once: never before this function returns, and
  /// never after `drop`.
  ///
  /// - Returns: nil if the deadline has passed; then nothing is sent.
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
    // Traffic that came before the request counts.
    questions.readTraffic { [weak self] hasTraffic in
      guard let self else { return }
      if hasTraffic { questions.recordActivity() }
      if !out.isDropped { put(request, out, until: deadline, answered) }
    }
    return out
  }

  private func put(
    _ request: Policy.Probe.HTTPRequest, _ out: ShedRequest, until deadline: Instant,
    _ answered: @escaping (ProbeRunner.Outcome) -> Void
  ) {
    // If the deadline has passed meanwhile, the probe fails at once.
    let timeout = max(deadline - timers.now, .milliseconds(1))
    openRequests += 1
    out.dropQuestion = questions.ask(Policy.Probe(.http(request), timeout: timeout)) {
      [weak self] outcome in
      out.dropQuestion = nil
      self?.awaitProbeTraffic()
      if !out.isDropped { answered(outcome) }
    }
  }

  /// Stops waiting for the answer.
  ///
  /// - Returns: whether the request was under way.
  func drop(_ request: ShedRequest) -> Bool {
    request.isDropped = true
    guard let dropQuestion = request.dropQuestion else { return false }
    request.dropQuestion = nil
    dropQuestion()
    awaitProbeTraffic()
    return true
  }

  /// Waits until the worker has closed its end of the connection. The daemon's end is closed
  /// already.
  private func awaitProbeTraffic() {
    timers.after(LivenessMonitor.closingTime) { [weak self] in
      guard let self, isAsking else { return }
      guard questions.watchesTraffic else { return didEndProbeTraffic() }
      isDrainingTraffic = true
      questions.readTraffic { [weak self] _ in
        if let self, isAsking { didEndProbeTraffic() }
      }
    }
  }

  private func didEndProbeTraffic() {
    openRequests -= 1
    isDrainingTraffic = false
    if openRequests == 0 { questions.didEndQuestion() }
  }
}

/// A request of `ShedOverHTTP`.
final class ShedRequest {
  fileprivate var dropQuestion: (() -> Void)?
  fileprivate var isDropped = false
}

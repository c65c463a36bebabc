import Lifecycle
import Linux
import Policy
import Supervision

// `shed: { http: … }`: asks as a probe asks, with the shed's deadline. Its connection is no activity: what
// came before the request counts, and what comes with it doesn't. The worker isn't suspended before the
// connection is gone: a connection in its queue would wake it.

/// One such request.
final class ShedRequest {
  fileprivate var question: Question?
  fileprivate init() {}
}

extension Daemon {
  func askOverHTTP(
    _ request: Policy.Probe.HTTPRequest, _ attempt: ShedAttempt, _ runtime: WorkerRuntime,
    _ process: WorkerProcess, until deadline: Instant
  ) {
    guard deadline > EventLoop.now else { return }
    let out = ShedRequest()
    attempt.request = out
    guard runtime.traffic != nil else {
      return put(request, out, attempt, runtime, process, until: deadline)
    }
    // What came before the request counts.
    lookAtActivity(of: runtime) { [unowned self] found in
      if found?.hasTraffic == true { driver.send(.activity(runtime.id)) }
      guard runtime.process === process, runtime.shed === attempt, attempt.request === out else {
        return
      }
      put(request, out, attempt, runtime, process, until: deadline)
    }
  }

  private func put(
    _ request: Policy.Probe.HTTPRequest, _ out: ShedRequest, _ attempt: ShedAttempt,
    _ runtime: WorkerRuntime, _ process: WorkerProcess, until deadline: Instant
  ) {
    // The time may be over; then the probe fails at once.
    let timeout = max(deadline - EventLoop.now, .milliseconds(1))
    runtime.openRequests += 1
    out.question = ask(Policy.Probe(.http(request), timeout: timeout), process) {
      [unowned self] outcome in
      out.question = nil
      settle(runtime, process)
      guard runtime.shed === attempt, attempt.request === out else { return }
      attempt.request = nil
      answered(outcome, attempt, runtime)
    }
  }

  private func answered(
    _ outcome: ProbeRunner.Outcome, _ attempt: ShedAttempt, _ runtime: WorkerRuntime
  ) {
    switch outcome {
    case .success:
      // By word it is asked as well, and answers itself.
      if case .awaited = attempt.word { return }
      driver.send(.shedAnswered(runtime.id))
    case .failure(let why):
      log(.warning, "\(runtime.id): its shed request failed: \(why)")
      if attempt.word == .given { return driver.send(.shedAnswered(runtime.id)) }
      lookWhetherItRests(runtime, attempt)
    }
  }

  /// The time is over, or the worker has ended.
  func endRequest(of attempt: ShedAttempt, _ runtime: WorkerRuntime) {
    guard let out = attempt.request else { return }
    attempt.request = nil
    // Not put yet: nothing is out.
    guard let question = out.question else { return }
    out.question = nil
    log(.warning, "\(runtime.id): its shed request failed: no answer in time")
    drop(question)
    if let process = runtime.process { settle(runtime, process) }
  }

  /// The connection is closed here; the worker lets go of it in a moment.
  private func settle(_ runtime: WorkerRuntime, _ process: WorkerProcess) {
    loop.after(LivenessMonitor.settling) { [unowned self] in
      guard runtime.process === process, runtime.openRequests > 0 else { return }
      guard runtime.traffic != nil else { return settled(runtime) }
      runtime.isSettlingRequest = true
      lookAtActivity(of: runtime) { [unowned self] _ in
        guard runtime.process === process, runtime.openRequests > 0 else { return }
        settled(runtime)
      }
    }
  }

  private func settled(_ runtime: WorkerRuntime) {
    runtime.openRequests -= 1
    runtime.isSettlingRequest = false
    if runtime.openRequests == 0 { resumeUnasked(runtime) }
  }
}

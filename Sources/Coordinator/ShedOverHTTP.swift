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
    let now = EventLoop.now
    guard deadline > now else { return }
    let probe = Policy.Probe(.http(request), timeout: deadline - now)
    // What came before the request counts.
    if seesTraffic(runtime) { feed(.activity(runtime.id)) }
    let out = ShedRequest()
    attempt.request = out
    runtime.openRequests += 1
    out.question = ask(probe, process) { [unowned self] outcome in
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
      feed(.shedAnswered(runtime.id))
    case .failure(let why):
      log(.warning, "\(runtime.id): its shed request failed: \(why)")
      if attempt.word == .given { return feed(.shedAnswered(runtime.id)) }
      lookWhetherItRests(runtime, attempt)
    }
  }

  /// The time is over, or the worker has ended.
  func endRequest(of attempt: ShedAttempt, _ runtime: WorkerRuntime) {
    guard let out = attempt.request, let question = out.question else { return }
    attempt.request = nil
    out.question = nil
    log(.warning, "\(runtime.id): its shed request failed: no answer in time")
    drop(question)
    if let process = runtime.process { settle(runtime, process) }
  }

  /// The connection is closed here; the worker lets go of it in a moment.
  private func settle(_ runtime: WorkerRuntime, _ process: WorkerProcess) {
    loop.after(Self.questionSettling) { [unowned self] in
      guard runtime.process === process, runtime.openRequests > 0 else { return }
      _ = seesTraffic(runtime)
      runtime.openRequests -= 1
      if runtime.openRequests == 0 { resumeUnasked(runtime) }
    }
  }
}

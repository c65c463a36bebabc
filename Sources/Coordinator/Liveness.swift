import Lifecycle
import Linux
import Policy
import Supervision

// `liveness:`. A running worker is asked over and over; one that sleeps isn't, and neither is one that
// starts or ends. A worker whose answers fail is terminated, and started again as `restart` says.
//
// A question is no activity: `TrafficMonitor` is read right before it, and what it has seen by a moment
// after the answer is forgotten. And a question doesn't wake: no worker falls asleep before its answer
// is there and its connection is gone.

/// One worker's questions.
struct Liveness {
  var state: ProbeState
  var question: Question?
  /// Until its connection is gone from the worker, too.
  var isAsking = false
  /// The answer is there: what it brought is looked at, so that it is no activity.
  var isSettling = false
  var timer: EventLoop.Token?
  /// The last failure's reason, while the last answer was one.
  var lastFailure: String?

  init(_ probe: Policy.Probe) { state = ProbeState(probe, for: .liveness) }
}

extension Daemon {
  /// From an answer until the worker has let go of the connection.
  static let questionSettling = Duration.milliseconds(100)

  /// `transition`: nil: the configuration has changed.
  func followLiveness(of runtime: WorkerRuntime, _ transition: Transition?) {
    let state = transition?.to ?? engine.state(of: runtime.id) ?? .terminated
    guard let probe = runtime.configuration.liveness, runtime.foreign == nil,
      state == .foreground || state == .background
    else { return rest(runtime, state) }
    let isNew = runtime.liveness?.state.probe != probe
    if isNew {
      rest(runtime, .terminated)
      runtime.liveness = Liveness(probe)
    }
    guard runtime.liveness?.timer == nil, runtime.liveness?.isAsking == false else { return }
    runtime.liveness?.state.resumed()
    // From its launch on, or from a wake: what has been reads in again takes its time.
    let wasAsleep = transition?.from == .resuming
    let start = wasAsleep ? EventLoop.now : max(runtime.runs.launchedAt, .zero)
    let first = runtime.liveness?.state.firstQuestion(after: start) ?? start
    schedule(runtime, at: max(first, EventLoop.now))
  }

  private func rest(_ runtime: WorkerRuntime, _ state: WorkerState) {
    if let timer = runtime.liveness?.timer { loop.cancel(timer) }
    runtime.liveness?.timer = nil
    // Its answer is waited for before the worker is frozen; see `whenUnasked`.
    if state == .suspending { return }
    if let question = runtime.liveness?.question { drop(question) }
    runtime.liveness?.question = nil
    if state == .terminated || state == .terminating {
      runtime.whenUnasked = nil
      runtime.liveness = nil
    }
  }

  private func schedule(_ runtime: WorkerRuntime, at moment: Instant) {
    runtime.liveness?.timer = loop.at(moment) { [unowned self] in
      runtime.liveness?.timer = nil
      askWhetherAlive(runtime)
    }
  }

  private func askWhetherAlive(_ runtime: WorkerRuntime) {
    guard runtime.traffic != nil, let process = runtime.process, mayBeAsked(runtime, process) else {
      return putQuestion(to: runtime)
    }
    // What came before the question counts.
    lookAtActivity(of: runtime) { [unowned self] found in
      if found?.hasTraffic == true { feed(.activity(runtime.id)) }
      if runtime.liveness?.timer == nil, runtime.liveness?.isAsking == false {
        putQuestion(to: runtime)
      }
    }
  }

  private func mayBeAsked(_ runtime: WorkerRuntime, _ process: WorkerProcess) -> Bool {
    runtime.process === process && !runtime.hasExited && !runtime.isBusy
      && engine.state(of: runtime.id)?.runs == true
  }

  private func putQuestion(to runtime: WorkerRuntime) {
    guard let probe = runtime.liveness?.state.probe, let process = runtime.process,
      mayBeAsked(runtime, process)
    else { return }
    let askedAt = EventLoop.now
    runtime.liveness?.isAsking = true
    runtime.liveness?.question = ask(probe, process) { [unowned self] outcome in
      runtime.liveness?.question = nil
      loop.after(Self.questionSettling) { [unowned self] in
        guard runtime.process === process, runtime.liveness?.isAsking == true else { return }
        // And what came with it doesn't.
        guard runtime.traffic != nil else { return answered(outcome, runtime, askedAt) }
        runtime.liveness?.isSettling = true
        lookAtActivity(of: runtime) { [unowned self] _ in
          guard runtime.process === process, runtime.liveness?.isSettling == true else { return }
          answered(outcome, runtime, askedAt)
        }
      }
    }
  }

  private func answered(
    _ outcome: ProbeRunner.Outcome, _ runtime: WorkerRuntime, _ askedAt: Instant
  ) {
    runtime.liveness?.isAsking = false
    runtime.liveness?.isSettling = false
    take(outcome, runtime, askedAt)
    resumeUnasked(runtime)
  }

  private func take(
    _ outcome: ProbeRunner.Outcome, _ runtime: WorkerRuntime, _ askedAt: Instant
  ) {
    guard var state = runtime.liveness?.state else { return }
    let verdict: ProbeState.Verdict?
    switch outcome {
    case .success:
      runtime.liveness?.lastFailure = nil
      verdict = state.take(success: true)
    case .failure(let why):
      runtime.liveness?.lastFailure = why
      verdict = state.take(success: false)
    }
    runtime.liveness?.state = state
    let now = EventLoop.now
    if engine.state(of: runtime.id)?.runs == true {
      schedule(runtime, at: max(now, state.nextQuestion(after: askedAt, answeredAt: now)))
    }
    guard verdict == .failing, let why = runtime.liveness?.lastFailure else { return }
    let count = state.probe.failureThreshold
    let often = count == 1 ? "" : " \(count) times in a row"
    feed(.unhealthy(runtime.id, "its liveness probe failed\(often): \(why)"))
  }

  /// Does it now, or when the question that is out has been answered: a connection that waits in a
  /// frozen worker's queue would wake it.
  func whenUnasked(_ runtime: WorkerRuntime, _ action: @escaping () -> Void) {
    guard runtime.isAsked else { return action() }
    runtime.whenUnasked = { [unowned self] in
      if engine.state(of: runtime.id) == .suspending, !runtime.hasExited { action() }
    }
  }

  /// A question has ended, and its connection is gone.
  func resumeUnasked(_ runtime: WorkerRuntime) {
    guard !runtime.isAsked, let action = runtime.whenUnasked else { return }
    runtime.whenUnasked = nil
    action()
  }
}

import Policy
import Supervision

/// Probes a running worker again and again, as `liveness:` says, and reports a worker that fails.
/// It doesn't probe a worker that sleeps, starts or ends.
///
/// A probe doesn't count as activity: traffic is read right before it, and traffic until a moment
/// after the answer is ignored. A probe doesn't wake a worker either: no worker falls asleep before
/// its answer has come and its connection is closed (`isAsking`).
///
/// There is one for each run of a worker. It belongs to the event loop's thread.
final class LivenessMonitor {
  /// The time from an answer until the worker has closed its connection.
  static let closingTime = Duration.milliseconds(100)
  /// How long a reading of the traffic, or a question after its time-out, may take. Only a lost
  /// outcome takes longer.
  static let timeout = Duration.seconds(15)

  private let timers: any Timers
  private let questions: RunQuestions
  private var state: ProbeState
  private var dropQuestion: (() -> Void)?
  /// The timer of the next question.
  private var timer: EventLoop.Token?
  private var operations = OperationCount()
  /// The timer of the operation that is under way.
  private var deadline: EventLoop.Token?
  /// Whether the worker is falling asleep or sleeps.
  private var isPaused = true
  private var isOver = false

  /// Whether a probe is under way, or the worker hasn't closed its connection yet.
  private(set) var isAsking = false
  /// Whether the answer has come and its traffic is being read, so that it doesn't count as
  /// activity.
  private(set) var isDrainingTraffic = false
  /// Why the last probe failed; nil if it succeeded.
  private(set) var lastFailure: String?

  var probe: Policy.Probe { state.probe }

  init(_ probe: Policy.Probe, timers: any Timers, questions: RunQuestions) {
    self.timers = timers
    self.questions = questions
    state = ProbeState(probe, for: .liveness)
  }

  deinit { end() }

  /// Begins to probe, because the worker runs.
  ///
  /// - Parameter start: the worker's launch or its wake. A worker that was just woken needs time to
  ///   read its memory back.
  func runs(since start: Instant) {
    isPaused = false
    guard !isOver, timer == nil, !isAsking else { return }
    // Earlier results are forgotten. A worker that still fails is reported again, because the
    // engine ignores a failure that is reported while the worker falls asleep.
    state = ProbeState(probe, for: .liveness)
    schedule(at: state.firstQuestion(after: start))
  }

  /// Asks no more questions, because the worker is falling asleep. A pending answer still counts.
  func pause() {
    isPaused = true
    if let timer { timers.cancel(timer) }
    timer = nil
  }

  /// Drops the pending question, because the worker sleeps or is being woken.
  func stopAsking() {
    pause()
    guard dropQuestion != nil else { return }
    isAsking = false
    dropTheQuestion()
    stopWaiting()
  }

  private func dropTheQuestion() {
    let drop = dropQuestion
    dropQuestion = nil
    drop?()
  }

  /// Ends the monitor, because the run has ended or the probe has changed.
  func end() {
    stopAsking()
    stopWaiting()
    isOver = true
    isAsking = false
    isDrainingTraffic = false
  }

  private func schedule(at moment: Instant) {
    timer = timers.at(moment) { [weak self] in
      self?.timer = nil
      self?.questionIsDue()
    }
  }

  private func questionIsDue() {
    guard questions.watchesTraffic, questions.mayBeAsked else { return putQuestion() }
    // Traffic that came before the question counts.
    begin(within: Self.timeout) {
      $0.readTraffic(then: $1)
    } then: {
      if $1 == true { $0.questions.recordActivity() }
      if $0.timer == nil, !$0.isAsking, !$0.isPaused { $0.putQuestion() }
    }
  }

  private func putQuestion() {
    let askedAt = timers.now
    guard questions.mayBeAsked else {
      // An operation on the worker is under way, and may leave it running. The next question is
      // asked at its usual time.
      if !isPaused { schedule(at: state.nextQuestion(after: askedAt, answeredAt: askedAt)) }
      return
    }
    isAsking = true
    begin(within: probe.timeout + Self.timeout) { [self] questions, done in
      dropQuestion = questions.ask(probe, then: done)
    } then: { monitor, outcome in
      if outcome == nil { monitor.dropTheQuestion() }
      monitor.dropQuestion = nil
      monitor.awaitProbeTraffic(outcome, askedAt)
    }
  }

  private func awaitProbeTraffic(_ outcome: ProbeRunner.Outcome?, _ askedAt: Instant) {
    begin(within: Self.closingTime) { (_, _: @escaping (()) -> Void) in
    } then: { monitor, _ in
      // Traffic that came with the question doesn't count.
      guard monitor.questions.watchesTraffic else { return monitor.answered(outcome, askedAt) }
      monitor.isDrainingTraffic = true
      monitor.begin(within: Self.timeout) {
        $0.readTraffic(then: $1)
      } then: { monitor, _ in
        monitor.answered(outcome, askedAt)
      }
    }
  }

  private func answered(_ outcome: ProbeRunner.Outcome?, _ askedAt: Instant) {
    isAsking = false
    isDrainingTraffic = false
    apply(outcome, askedAt)
    questions.didEndQuestion()
  }

  /// - Parameter outcome: nil if it was lost, which says nothing about the worker.
  private func apply(_ outcome: ProbeRunner.Outcome?, _ askedAt: Instant) {
    var verdict: ProbeState.Verdict?
    switch outcome {
    case nil: break
    case .success:
      lastFailure = nil
      verdict = state.record(success: true)
    case .failure(let reason):
      lastFailure = reason
      verdict = state.record(success: false)
    }
    if !isPaused {
      schedule(at: state.nextQuestion(after: askedAt, answeredAt: timers.now))
    }
    guard verdict == .failing, let lastFailure else { return }
    let count = probe.failureThreshold
    let often = count == 1 ? "" : " \(count) times in a row"
    questions.reportUnhealthy("liveness probe failed\(often): \(lastFailure)")
  }

  /// Begins an operation. `then` is called once: with the outcome, or with nil at the deadline. It
  /// isn't called if another operation has begun or the run has ended.
  private func begin<Outcome>(
    within limit: Duration,
    _ work: (RunQuestions, @escaping (Outcome) -> Void) -> Void,
    then: @escaping (LivenessMonitor, Outcome?) -> Void
  ) {
    stopWaiting()
    let number = operations.begin()
    let finish: (Outcome?) -> Void = { [weak self] outcome in
      guard let self, operations.isLatest(number) else { return }
      stopWaiting()
      then(self, outcome)
    }
    deadline = timers.after(limit) { [weak self] in
      self?.deadline = nil
      finish(nil)
    }
    work(questions) { finish($0) }
  }

  private func stopWaiting() {
    if let deadline { timers.cancel(deadline) }
    deadline = nil
    _ = operations.begin()
  }
}

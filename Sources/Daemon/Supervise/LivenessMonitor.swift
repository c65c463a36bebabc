import Lifecycle
import Policy
import Supervision

/// `liveness:`. Probes a running worker again and again. It doesn't probe a worker that sleeps, starts or ends.
/// It reports a worker whose answers fail.
///
/// A probe doesn't count as activity: traffic is looked at right before it, and what comes until a moment after
/// the answer is ignored. And a probe doesn't wake a worker: no worker falls asleep before its answer has come
/// and its connection is closed (`isAsking`).
///
/// One for one run of a worker. Belongs to the loop's thread.
final class LivenessMonitor {
  /// From an answer until the worker has let go of the connection.
  static let settling = Duration.milliseconds(100)
  /// For the outcome of a look, and of a question after its time-out. Only a lost outcome takes longer.
  static let patience = Duration.seconds(15)

  private let timers: any Timers
  private let questions: RunQuestions
  private var state: ProbeState
  private var dropQuestion: (() -> Void)?
  /// Of the next question.
  private var timer: EventLoop.Token?
  private var operations = OperationCount()
  /// Of the look or the question that is under way.
  private var deadline: EventLoop.Token?
  /// It is falling asleep, or sleeps.
  private var isPaused = true
  private var isOver = false

  /// From a probe until the worker has closed its connection, too.
  private(set) var isAsking = false
  /// The answer is there: what it brought is looked at, so that it is no activity.
  private(set) var isSettling = false
  /// The last failure's reason, while the last answer was one.
  private(set) var lastFailure: String?

  var probe: Policy.Probe { state.probe }

  init(_ probe: Policy.Probe, timers: any Timers, questions: RunQuestions) {
    self.timers = timers
    self.questions = questions
    state = ProbeState(probe, for: .liveness)
  }

  deinit { end() }

  /// The worker runs.
  ///
  /// - Parameter start: its launch, or the moment when it was woken: what has been reads in again takes its
  ///   time.
  func runs(since start: Instant) {
    isPaused = false
    guard !isOver, timer == nil, !isAsking else { return }
    // What was found before is forgotten. A worker that still fails is reported again: the engine takes no notice of
    // a failure that is reported while the worker falls asleep.
    state = ProbeState(probe, for: .liveness)
    schedule(at: state.firstQuestion(after: start))
  }

  /// It is falling asleep: there are no more questions, and the answer that is awaited still counts.
  func pause() {
    isPaused = true
    if let timer { timers.cancel(timer) }
    timer = nil
  }

  /// It sleeps, or is on its way from sleep.
  func rest() {
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

  /// The run is over, or the probe is another one.
  func end() {
    rest()
    stopWaiting()
    isOver = true
    isAsking = false
    isSettling = false
  }

  private func schedule(at moment: Instant) {
    timer = timers.at(moment) { [weak self] in
      self?.timer = nil
      self?.questionIsDue()
    }
  }

  private func questionIsDue() {
    guard questions.watchesTraffic, questions.mayBeAsked else { return putQuestion() }
    // What came before the question counts.
    begin(within: Self.patience) {
      $0.lookAtTraffic(then: $1)
    } then: {
      if $1 == true { $0.questions.wasActive() }
      if $0.timer == nil, !$0.isAsking, !$0.isPaused { $0.putQuestion() }
    }
  }

  private func putQuestion() {
    let askedAt = timers.now
    guard questions.mayBeAsked else {
      // Something is being done to it, which may leave it running: the next question is asked in its turn.
      if !isPaused { schedule(at: state.nextQuestion(after: askedAt, answeredAt: askedAt)) }
      return
    }
    isAsking = true
    begin(within: probe.timeout + Self.patience) { [self] questions, done in
      dropQuestion = questions.ask(probe, then: done)
    } then: { monitor, outcome in
      if outcome == nil { monitor.dropTheQuestion() }
      monitor.dropQuestion = nil
      monitor.waitOutOwnTraffic(outcome, askedAt)
    }
  }

  private func waitOutOwnTraffic(_ outcome: ProbeRunner.Outcome?, _ askedAt: Instant) {
    begin(within: Self.settling) { (_, _: @escaping (()) -> Void) in
    } then: { monitor, _ in
      // What came with the question doesn't count.
      guard monitor.questions.watchesTraffic else { return monitor.answered(outcome, askedAt) }
      monitor.isSettling = true
      monitor.begin(within: Self.patience) {
        $0.lookAtTraffic(then: $1)
      } then: { monitor, _ in
        monitor.answered(outcome, askedAt)
      }
    }
  }

  private func answered(_ outcome: ProbeRunner.Outcome?, _ askedAt: Instant) {
    isAsking = false
    isSettling = false
    apply(outcome, askedAt)
    questions.questionHasEnded()
  }

  /// - Parameter outcome: nil: it was lost, which says nothing of the worker.
  private func apply(_ outcome: ProbeRunner.Outcome?, _ askedAt: Instant) {
    var verdict: ProbeState.Verdict?
    switch outcome {
    case nil: break
    case .success:
      lastFailure = nil
      verdict = state.record(success: true)
    case .failure(let why):
      lastFailure = why
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

  /// `then` is called once: with the outcome, or with nil at the deadline. It isn't called when something else has
  /// begun, or the run is over.
  private func begin<Outcome>(
    within limit: Duration,
    _ work: (RunQuestions, @escaping (Outcome) -> Void) -> Void,
    then: @escaping (LivenessMonitor, Outcome?) -> Void
  ) {
    stopWaiting()
    let number = operations.begin()
    let take: (Outcome?) -> Void = { [weak self] outcome in
      guard let self, operations.isLatest(number) else { return }
      stopWaiting()
      then(self, outcome)
    }
    deadline = timers.after(limit) { [weak self] in
      self?.deadline = nil
      take(nil)
    }
    work(questions) { take($0) }
  }

  private func stopWaiting() {
    if let deadline { timers.cancel(deadline) }
    deadline = nil
    _ = operations.begin()
  }
}

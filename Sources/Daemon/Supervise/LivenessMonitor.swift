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
  private let operation: TimedOperation
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
    operation = TimedOperation(timers)
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
    operation.cancel()
  }

  private func dropTheQuestion() {
    let drop = dropQuestion
    dropQuestion = nil
    drop?()
  }

  /// Ends the monitor, because the run has ended or the probe has changed.
  func end() {
    stopAsking()
    operation.cancel()
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
    operation.begin(within: Self.timeout, orElse: false) {
      questions.readTraffic(then: $0)
    } then: { [unowned self] hasTraffic in
      if hasTraffic { questions.recordActivity() }
      if timer == nil, !isAsking, !isPaused { putQuestion() }
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
    operation.begin(within: probe.timeout + Self.timeout, orElse: nil) { done in
      dropQuestion = questions.ask(probe) { done($0) }
    } then: { [unowned self] (outcome: ProbeRunner.Outcome?) in
      if outcome == nil { dropTheQuestion() }
      dropQuestion = nil
      awaitProbeTraffic(outcome, askedAt)
    }
  }

  private func awaitProbeTraffic(_ outcome: ProbeRunner.Outcome?, _ askedAt: Instant) {
    operation.wait(Self.closingTime) { [unowned self] in
      // Traffic that came with the question doesn't count.
      guard questions.watchesTraffic else { return answered(outcome, askedAt) }
      isDrainingTraffic = true
      operation.begin(within: Self.timeout, orElse: false) {
        questions.readTraffic(then: $0)
      } then: { [unowned self] _ in
        answered(outcome, askedAt)
      }
    }
  }

  /// - Parameter outcome: nil if it was lost, which says nothing about the worker.
  private func answered(_ outcome: ProbeRunner.Outcome?, _ askedAt: Instant) {
    defer { questions.didEndQuestion() }
    isAsking = false
    isDrainingTraffic = false
    var verdict: ProbeState.Verdict?
    if let outcome {
      lastFailure = if case .failure(let reason) = outcome { reason } else { nil }
      verdict = state.record(success: outcome == .success)
    }
    if !isPaused {
      schedule(at: state.nextQuestion(after: askedAt, answeredAt: timers.now))
    }
    guard verdict == .failing, let lastFailure else { return }
    let count = probe.failureThreshold
    let often = count == 1 ? "" : " \(count) times in a row"
    questions.reportUnhealthy("liveness probe failed\(often): \(lastFailure)")
  }
}

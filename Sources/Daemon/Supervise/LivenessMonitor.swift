import Policy
import Supervision

/// Probes a running worker again and again, as `liveness:` says, and reports a worker that fails.
/// It doesn't probe a worker that sleeps, starts or ends.
///
/// A probe doesn't count as activity, and doesn't wake a worker (`QuietQuestion`).
///
/// There is one for each run of a worker. It belongs to the event loop's thread.
final class LivenessMonitor {
  private let timers: any Timers
  private let question: QuietQuestion
  private var state: ProbeState
  /// The timer of the next question.
  private var timer: EventLoop.Token?
  /// Whether the worker is falling asleep or sleeps.
  private var isPaused = true
  private var isOver = false

  /// Why the last probe failed; nil if it succeeded.
  private(set) var lastFailure: String?

  var probe: Policy.Probe { state.probe }

  init(_ probe: Policy.Probe, timers: any Timers, question: QuietQuestion) {
    self.timers = timers
    self.question = question
    state = ProbeState(probe, for: .liveness)
  }

  deinit { end() }

  /// Begins to probe, because the worker runs.
  ///
  /// - Parameter start: the worker's launch or its wake. A worker that was just woken needs time to
  ///   read its memory back.
  func runs(since start: Instant) {
    isPaused = false
    guard !isOver, timer == nil, !question.isAsking else { return }
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
    if question.isUnanswered { question.cancel() }
  }

  /// Ends the monitor, because the run has ended or the probe has changed.
  func end() {
    pause()
    question.cancel()
    isOver = true
  }

  private func schedule(at moment: Instant) {
    timer = timers.at(moment) { [weak self] in
      self?.timer = nil
      self?.questionIsDue()
    }
  }

  private func questionIsDue() {
    guard question.mayBeAsked else { return putQuestion() }
    question.readEarlierTraffic { [unowned self] in
      if timer == nil, !question.isAsking, !isPaused { putQuestion() }
    }
  }

  private func putQuestion() {
    let askedAt = timers.now
    guard question.mayBeAsked else {
      // An operation on the worker is under way, and may leave it running. The next question is
      // asked at its usual time.
      if !isPaused { schedule(at: state.nextQuestion(after: askedAt, answeredAt: askedAt)) }
      return
    }
    var outcome: ProbeRunner.Outcome?
    question.ask(probe) {
      outcome = $0
    } ended: { [unowned self] in
      questionEnded(outcome, askedAt)
    }
  }

  /// - Parameter outcome: nil if it was lost, which says nothing about the worker.
  private func questionEnded(_ outcome: ProbeRunner.Outcome?, _ askedAt: Instant) {
    var verdict: ProbeState.Verdict?
    switch outcome {
    case .success:
      lastFailure = nil
      verdict = state.record(success: true)
    case .failure(let reason):
      lastFailure = reason
      verdict = state.record(success: false)
    case .unasked, nil: break
    }
    if !isPaused {
      schedule(at: state.nextQuestion(after: askedAt, answeredAt: timers.now))
    }
    guard verdict == .failing, let lastFailure else { return }
    let count = probe.failureThreshold
    let often = count == 1 ? "" : " \(count) times in a row"
    question.reportUnhealthy("liveness probe failed\(often): \(lastFailure)")
  }
}

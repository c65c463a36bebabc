import Lifecycle
import Policy
import Supervision

/// What is needed to ask in a worker's run without the question counting as activity. Tests hand in their own.
protocol QuestionHost: AnyObject {
  /// Whether what comes in on its connections counts as activity.
  var watchesTraffic: Bool { get }

  /// Asks once, and calls back with the answer, or the lack of one; never before this returns.
  ///
  /// - Returns: what drops the question: no answer comes then.
  func ask(
    _ probe: Policy.Probe, then answer: @escaping (ProbeRunner.Outcome) -> Void
  ) -> () -> Void

  /// Whether something has come in since the last look. While a question is out, only the look is made that
  /// takes what came with it.
  func lookAtTraffic(then: @escaping (_ hasTraffic: Bool) -> Void)

  func wasActive()
  /// Its answer is there, and its connection is gone.
  func questionHasEnded()
}

/// What `LivenessMonitor` needs of its worker's run.
protocol LivenessHost: QuestionHost {
  /// It runs, and nothing is being done to it.
  var mayBeAsked: Bool { get }
  /// Why it fails; a sentence's beginning.
  func isUnhealthy(_ why: String)
}

/// `liveness:`. A running worker is asked over and over; one that sleeps isn't, and neither is one that
/// starts or ends. A worker whose answers fail is reported.
///
/// A question is no activity: traffic is looked at right before it, and what has come in by a moment
/// after the answer is forgotten. And a question doesn't wake: no worker falls asleep before its answer
/// is there and its connection is gone (`isAsking`).
///
/// One for one run of a worker. Belongs to the loop's thread.
final class LivenessMonitor {
  /// From an answer until the worker has let go of the connection.
  static let settling = Duration.milliseconds(100)

  private let timers: any Timers
  private let host: any LivenessHost
  private var state: ProbeState
  private var dropQuestion: (() -> Void)?
  private var timer: EventLoop.Token?
  /// It is falling asleep, or sleeps.
  private var isPaused = true
  private var isOver = false

  /// From a question until its connection is gone from the worker, too.
  private(set) var isAsking = false
  /// The answer is there: what it brought is looked at, so that it is no activity.
  private(set) var isSettling = false
  /// The last failure's reason, while the last answer was one.
  private(set) var lastFailure: String?

  var probe: Policy.Probe { state.probe }

  init(_ probe: Policy.Probe, timers: any Timers, host: any LivenessHost) {
    self.timers = timers
    self.host = host
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
    state.resumed()
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
    guard let dropQuestion else { return }
    self.dropQuestion = nil
    isAsking = false
    dropQuestion()
  }

  /// The run is over, or the probe is another one.
  func end() {
    rest()
    isOver = true
    isAsking = false
    isSettling = false
  }

  private func schedule(at moment: Instant) {
    timer = timers.after(max(moment - timers.now, .zero)) { [weak self] in
      self?.timer = nil
      self?.questionIsDue()
    }
  }

  private func questionIsDue() {
    guard host.watchesTraffic, host.mayBeAsked else { return putQuestion() }
    // What came before the question counts.
    host.lookAtTraffic { [weak self] hasTraffic in
      guard let self, !isOver else { return }
      if hasTraffic { host.wasActive() }
      if timer == nil, !isAsking, !isPaused { putQuestion() }
    }
  }

  private func putQuestion() {
    let askedAt = timers.now
    guard host.mayBeAsked else {
      // Something is being done to it, which may leave it running: the next question is asked in its turn.
      if !isPaused { schedule(at: state.nextQuestion(after: askedAt, answeredAt: askedAt)) }
      return
    }
    isAsking = true
    dropQuestion = host.ask(probe) { [weak self] outcome in
      self?.dropQuestion = nil
      self?.waitOutOwnTraffic(outcome, askedAt)
    }
  }

  private func waitOutOwnTraffic(_ outcome: ProbeRunner.Outcome, _ askedAt: Instant) {
    timers.after(Self.settling) { [weak self] in
      guard let self, isAsking else { return }
      // What came with the question doesn't count.
      guard host.watchesTraffic else { return answered(outcome, askedAt) }
      isSettling = true
      host.lookAtTraffic { [weak self] _ in
        guard let self, isSettling else { return }
        answered(outcome, askedAt)
      }
    }
  }

  private func answered(_ outcome: ProbeRunner.Outcome, _ askedAt: Instant) {
    isAsking = false
    isSettling = false
    apply(outcome, askedAt)
    host.questionHasEnded()
  }

  private func apply(_ outcome: ProbeRunner.Outcome, _ askedAt: Instant) {
    let verdict: ProbeState.Verdict?
    switch outcome {
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
    host.isUnhealthy("its liveness probe failed\(often): \(lastFailure)")
  }
}

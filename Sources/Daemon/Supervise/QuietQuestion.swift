import Lifecycle
import Policy
import Supervision

/// A question to one run of a worker that doesn't count as activity: traffic before the question
/// counts, and traffic that comes with it doesn't. The worker isn't suspended before the question's
/// connection is closed, because a connection in the worker's queue would wake it. A question of a
/// `LivenessMonitor` is asked again and again, and one of a `ShedAttempt` once. It belongs to the
/// event loop's thread.
final class QuietQuestion {
  /// The time from an answer until the worker has closed its connection. The daemon's end is closed
  /// already.
  static let closingTime = Duration.milliseconds(100)
  /// How long a reading of the traffic, or a question after its time-out, may take. Only a lost
  /// outcome takes longer.
  static let timeout = Duration.seconds(15)

  private let supervisor: LivenessSupervisor
  private weak var worker: WorkerUnit?
  private let process: WorkerProcess
  private let operation: TimedOperation
  private var dropQuestion: (() -> Void)?
  private var ended: () -> Void = {}

  /// Whether the question is under way, or the worker hasn't closed its connection yet.
  private(set) var isAsking = false
  /// Whether the answer has come and its traffic is being read, so that it doesn't count as
  /// activity.
  private(set) var isDrainingTraffic = false
  /// Whether the question has been asked and has no answer yet.
  var isUnanswered: Bool { dropQuestion != nil }

  init(to worker: WorkerUnit, _ process: WorkerProcess, by supervisor: LivenessSupervisor) {
    self.supervisor = supervisor
    self.worker = worker
    self.process = process
    operation = TimedOperation(supervisor.timers)
  }

  /// Whether the worker runs and no operation on it is under way.
  var mayBeAsked: Bool {
    guard let worker, worker.process === process, !worker.hasExited, !worker.isBusy else {
      return false
    }
    return supervisor.driver.state.state(of: worker.id)?.runs == true
  }

  /// Reads the traffic that came before the question, and counts it as activity.
  func readEarlierTraffic(then: @escaping () -> Void) {
    readTraffic { [weak worker, driver = supervisor.driver] hasTraffic in
      if hasTraffic, let worker {
        worker.sample.sign = .traffic
        driver.send(.activity(worker.id))
      }
      then()
    }
  }

  /// Reads whether traffic has come since the last reading, if that counts as activity. While a
  /// question is under way, the only reading is the one that consumes the question's own traffic.
  private func readTraffic(then: @escaping (_ hasTraffic: Bool) -> Void) {
    guard let worker, worker.traffic != nil else { return then(false) }
    operation.begin(within: Self.timeout, orElse: false) { done in
      supervisor.activity.readActivity(of: worker) { done($0?.hasTraffic == true) }
    } then: {
      then($0)
    }
  }

  /// Asks.
  ///
  /// - Parameters:
  ///   - answered: gets the answer; nil if it was lost. Never called before this returns.
  ///   - ended: called after `answered` or `drop`, when the connection is closed.
  func ask(
    _ probe: Policy.Probe, answered: @escaping (ProbeRunner.Outcome?) -> Void,
    ended: @escaping () -> Void = {}
  ) {
    isAsking = true
    worker?.questions.append(self)
    self.ended = ended
    operation.begin(within: probe.timeout + Self.timeout, orElse: nil) { done in
      dropQuestion = supervisor.probes.put(probe, to: process) { done($0) }
    } then: { [unowned self] (outcome: ProbeRunner.Outcome?) in
      if outcome != nil { dropQuestion = nil }
      drop()
      answered(outcome)
    }
  }

  /// Drops the question, if it has no answer yet, and waits until its connection is closed.
  func drop() {
    dropAnswer()
    operation.wait(Self.closingTime) { [unowned self] in
      isDrainingTraffic = true
      readTraffic { [unowned self] _ in end() }
    }
  }

  /// - Parameter reason: the beginning of a sentence that says what fails.
  func reportUnhealthy(_ reason: String) {
    if let worker { supervisor.driver.send(.unhealthy(worker.id, reason)) }
  }

  private func end() {
    let ended = ended
    cancel()
    ended()
    worker?.performActionAfterQuestions()
  }

  /// Ends the question. Nothing is called any more.
  func cancel() {
    dropAnswer()
    operation.cancel()
    ended = {}
    guard isAsking else { return }
    (isAsking, isDrainingTraffic) = (false, false)
    worker?.questions.removeAll { $0 === self }
  }

  private func dropAnswer() {
    let drop = dropQuestion
    dropQuestion = nil
    drop?()
  }
}

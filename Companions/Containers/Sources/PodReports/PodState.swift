import Control
import KubernetesAPI

/// One pod: the wanted state of the API, its answers, and the next step. It is pure. If a step
/// fails, or its answer is lost, the API's state is unknown; it is read again, and the difference
/// decides. So the API reaches the wanted state, whatever fails on the way.
struct PodState: Sendable {
  typealias Instant = ContinuousClock.Instant

  enum Step: Hashable, Sendable {
    case read
    case set(PodCondition)
    case removeCondition
    case requests(RequestPlan.Step)
  }

  let pod: PodReference
  private let timing: ReportTiming
  private let resizes: Bool
  /// The API's state; nil if it is unknown.
  private(set) var record: PodRecord?
  private var readAt: Instant?
  /// The wanted condition; nil if there is none.
  private var condition: PodCondition?
  /// The footprints of all containers, while all sleep; nil while the pod is awake.
  private var asleep: [String: Int64]?
  /// The pod isn't in the API, or another one has its name. Until this time the API isn't asked for
  /// it.
  private(set) var lostUntil: Instant?
  private var notBefore: Instant?
  private var delay: Duration
  private var restoredAt: Instant?
  /// The time to check whether the kubelet has applied a restored request.
  private var checkAt: Instant?
  private var refusals = 0
  private var isRefused = false
  private var noted: Set<String> = []

  init(_ pod: PodReference, timing: ReportTiming, resizes: Bool) {
    self.pod = pod
    self.timing = timing
    self.resizes = resizes
    delay = timing.firstRetry
  }

  // MARK: what is wanted

  mutating func want(_ condition: PodCondition?, asleep: [String: Int64]?) {
    self.condition = condition
    if resizes, asleep == nil, self.asleep != nil {
      // The requests are read before they are restored.
      if record?.annotations[RequestPlan.annotation] != nil { forgetRecord() }
      isRefused = false
    }
    self.asleep = asleep
  }

  // MARK: what to do

  func step(at now: Instant) -> Step? {
    if let wait = pause, now < wait { return nil }
    guard let record, !isOutdated(at: now) else { return .read }
    if record.isEnding { return nil }
    if resizes, asleep == nil, let step = RequestPlan.restoring(record) { return .requests(step) }
    if let step = conditionStep(record) { return step }
    return shrinkStep(record, at: now).map { .requests($0) }
  }

  /// The time at which `step` may have a step, if it has none now; nil if only a change can cause
  /// one.
  func nextTime(after now: Instant) -> Instant? {
    if let wait = pause, now < wait { return wait }
    if record?.isEnding == true { return nil }
    return [readAt.map { $0 + timing.reread }, checkAt, pauseEnd].compactMap { $0 }
      .filter { $0 > now }.min()
  }

  private var pause: Instant? { [lostUntil, notBefore].compactMap { $0 }.max() }

  /// The end of the pause after a restored request.
  private var pauseEnd: Instant? {
    asleep == nil ? nil : restoredAt.map { $0 + timing.pauseBetweenResizes }
  }

  private func isOutdated(at now: Instant) -> Bool {
    if let checkAt, checkAt <= now { return true }
    guard let readAt else { return true }
    return now - readAt >= timing.reread
  }

  private func conditionStep(_ record: PodRecord) -> Step? {
    let present = record.condition(HibernatedCondition.type)
    guard let condition else { return present == nil ? nil : .removeCondition }
    guard present?.says(condition) != true else { return nil }
    return .set(condition)
  }

  private func shrinkStep(_ record: PodRecord, at now: Instant) -> RequestPlan.Step? {
    guard resizes, let asleep, !isRefused, refusals < 3, RequestPlan.obstacle(record) == nil else {
      return nil
    }
    if let pauseEnd, now < pauseEnd { return nil }
    return RequestPlan.shrinking(record, footprints: asleep)
  }

  // MARK: what came of it

  /// Lines for the log, each only once, and occurrences for the pod's events.
  struct Outcome: Sendable {
    var lines: [String] = []
    var happenings: [PodOccurrence] = []
  }

  mutating func answered(_ step: Step, _ record: PodRecord, at now: Instant) -> Outcome {
    var outcome = Outcome()
    guard record.uid == pod.uid else {
      lostUntil = now + timing.longestRetry
      forgetRecord()
      return outcome
    }
    self.record = record
    readAt = now
    (notBefore, lostUntil) = (nil, nil)
    delay = timing.firstRetry
    switch step {
    case .read: if let checkAt, checkAt <= now { check(record, &outcome) }
    case .requests(.restore(let requests)):
      restoredAt = now
      checkAt = now + timing.resizeCheck
      outcome.lines.append("\(pod.title): memory requests restored: \(Self.list(requests))")
    case .requests(.shrink(let requests)):
      refusals = 0
      outcome.lines.append(
        "\(pod.title): sleeps, memory requests lowered to \(Self.list(requests))")
    default: break
    }
    if resizes, asleep != nil, let obstacle = RequestPlan.obstacle(record) {
      logOnce("\(pod.title): its memory requests stay: \(obstacle)", &outcome)
    }
    return outcome
  }

  mutating func failed(_ step: Step, _ error: KubernetesError, at now: Instant) -> Outcome {
    var outcome = Outcome()
    // The request may have had its effect.
    forgetRecord()
    if error.isOutage { return outcome }
    if error.code == 404 && step == .read || Self.isAnotherPod(error) {
      lostUntil = now + timing.longestRetry
      return outcome
    }
    switch (step, error.code) {
    case (.requests(.shrink), _):
      isRefused = true
      refusals += 1
      logOnce("\(pod.title): its memory requests stay: \(Self.explained(error))", &outcome)
      return outcome
    case (.requests, _):
      logOnce("\(pod.title): its memory requests can't be restored yet: \(error)", &outcome)
    case (_, 409?): break
    default: logOnce("\(pod.title): its condition can't be set: \(error)", &outcome)
    }
    notBefore = now + delay
    delay = min(delay * 2, timing.longestRetry)
    return outcome
  }

  /// Delays the next attempt, for a reason that isn't the pod's.
  mutating func wait(until time: Instant) { notBefore = time }

  private mutating func check(_ record: PodRecord, _ outcome: inout Outcome) {
    checkAt = nil
    guard let pending = record.pendingResize else { return }
    let text = pending.message.isEmpty ? "" : ": \(escaped(pending.message))"
    outcome.lines.append(
      "\(pod.title): its restored memory requests aren't applied: \(pending.reason)\(text)")
    outcome.happenings.append(
      PodOccurrence(
        "RequestsNotRestored",
        "The pod is awake, and the node has no room for its memory requests: "
          + "\(pending.reason)\(text)",
        of: pod, kind: .warning))
  }

  private mutating func forgetRecord() {
    record = nil
    readAt = nil
  }

  private mutating func logOnce(_ line: String, _ outcome: inout Outcome) {
    if noted.insert(line).inserted { outcome.lines.append(line) }
  }

  /// Returns whether the error means that the pod with this name has another uid.
  private static func isAnotherPod(_ error: KubernetesError) -> Bool {
    guard case .status(let code, let text, _) = error else { return false }
    return (code == 409 || code == 422) && text.contains("metadata.uid")
  }

  private static func explained(_ error: KubernetesError) -> String {
    error.code == 404 || error.code == 405
      ? "the API has no `pods/resize`; it is in Kubernetes 1.33 and later" : "\(error)"
  }

  private static func list(_ requests: [MemoryRequest]) -> String {
    requests.map { "\(escaped($0.container)) \($0.quantity)" }.joined(separator: ", ")
  }
}

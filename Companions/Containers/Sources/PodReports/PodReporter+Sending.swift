import Control
import Glibc
import KubernetesAPI

/// A permission of a role.
enum Right: String, Hashable, Sendable {
  case events = "`create` and `patch` of `events`"
  case status = "`patch` of `pods/status`"
  case resize = "`patch` of `pods/resize`"
  case get = "`get` of `pods`"
}

/// Limits requests to `burst` at once, and to `rate` a second on average.
struct Pace: Sendable {
  private let burst = 20.0
  private let rate = 10.0
  private var tokens = 20.0
  private var filled = ContinuousClock.now

  /// Returns the time to wait; nil if a request may be sent now.
  mutating func delay(at now: ContinuousClock.Instant) -> Duration? {
    tokens = min(burst, tokens + (now - filled) / .seconds(1) * rate)
    filled = now
    tokens -= 1
    return tokens >= 0 ? nil : .seconds(-tokens / rate)
  }
}

extension PodReporter {
  enum Work: Sendable {
    case pod(PodReference, PodState.Step)
    case event(EventQueue.Delivery)
  }

  /// Sends reports until the task is cancelled.
  public func run() async {
    while !Task.isCancelled {
      let now = Instant.now
      if let outageUntil, now < outageUntil {
        // If the task is cancelled, the loop ends.
        try? await Task.sleep(until: outageUntil, clock: .continuous)
      } else if let work = nextWork(at: now) {
        await perform(work)
      } else {
        await wait(until: nextTime(after: now))
      }
      logLost()
    }
  }

  /// Returns the next work. Pods come first: requests of a pod that is awake are restored before
  /// anything else.
  func nextWork(at now: Instant, ending: Bool = false) -> Work? {
    let steps = states.compactMap { pod, state in state.step(at: now).map { (pod, $0) } }
      .filter { isPermitted($0.1, at: now) }
    if let (pod, step) = steps.min(by: { Self.order($0) < Self.order($1) }) {
      return .pod(pod, step)
    }
    guard !ending, !isBlocked(.events, at: now) else { return nil }
    return queue.next(at: now).map { .event($0) }
  }

  private static func order(_ entry: (PodReference, PodState.Step)) -> (Int, String) {
    let rank =
      switch entry.1 {
      case .requests(.restore): 0
      case .read, .set, .removeCondition: 1
      case .requests: 2
      }
    return (rank, entry.0.uid)
  }

  private func nextTime(after now: Instant) -> Instant? {
    var times = states.values.compactMap { $0.nextTime(after: now) }
    times += blocked.values.filter { $0 > now }
    if let next = queue.nextTime { times.append(max(next, now + .milliseconds(100))) }
    return times.min()
  }

  func perform(_ work: Work) async {
    if let delay = pace.delay(at: .now) {
      // If the task is cancelled, the request fails at once.
      try? await Task.sleep(for: delay)
    }
    switch work {
    case .pod(let pod, let step): await perform(step, of: pod)
    case .event(let delivery): await send(delivery)
    }
  }

  // MARK: pods

  private func perform(_ step: PodState.Step, of pod: PodReference) async {
    let outcome: PodState.Outcome?
    let right = right(for: step)
    do throws(KubernetesError) {
      let record = try await send(step, pod)
      succeeded()
      outcome = states[pod]?.answered(step, record, at: .now)
    } catch {
      outcome = states[pod]?.failed(step, error, at: .now)
      if error.isOutage {
        failed(error)
      } else if isMissingRight(error) {
        succeeded()
        let until = block(right, error)
        // Without this right the pod is read by a patch.
        states[pod]?.wait(until: right == .get ? .now : until)
        return
      } else {
        succeeded()
      }
    }
    guard let outcome else { return }
    for line in outcome.lines { log(line) }
    for happening in outcome.happenings { enqueue(happening) }
  }

  private func send(
    _ step: PodState.Step, _ pod: PodReference
  ) async throws(KubernetesError) -> PodRecord {
    switch step {
    case .read where right(for: step) == .get: return try await client.pod(pod)
    case .read: return try await client.patchStatus(of: pod, .nothing(pod))
    case .set(let condition):
      return try await client.patchStatus(of: pod, .set(dated(condition, pod), of: pod))
    case .removeCondition:
      return try await client.patchStatus(
        of: pod, .removeCondition(HibernatedCondition.type, of: pod))
    case .requests(.annotate(let entries)):
      return try await client.patchStatus(
        of: pod, .annotate(pod, [RequestPlan.annotation: RequestPlan.text(entries)]))
    case .requests(.forget):
      return try await client.patchStatus(of: pod, .annotate(pod, [RequestPlan.annotation: nil]))
    case .requests(.shrink(let requests)), .requests(.restore(let requests)):
      return try await client.resize(pod, .request(requests, of: pod))
    }
  }

  /// Returns the condition with the time of its transition, which stays if only the message
  /// changes.
  private func dated(_ condition: PodCondition, _ pod: PodReference) -> PodCondition {
    var condition = condition
    let present = states[pod]?.record?.condition(condition.type)
    condition.since =
      present?.status == condition.status ? present?.since : nil
    if condition.since == nil { condition.since = APITime.text(Int64(time(nil))) }
    return condition
  }

  private func right(for step: PodState.Step) -> Right {
    switch step {
    case .read: settings.resizes && !isBlocked(.get, at: .now) ? .get : .status
    case .requests(.shrink), .requests(.restore): .resize
    default: .status
    }
  }

  private func isPermitted(_ step: PodState.Step, at now: Instant) -> Bool {
    !isBlocked(right(for: step), at: now)
  }

  // MARK: events

  private func send(_ delivery: EventQueue.Delivery) async {
    do throws(KubernetesError) {
      if delivery.isNew {
        try await client.create(delivery.event)
      } else {
        try await client.repeated(delivery.event)
      }
      succeeded()
      queue.delivered(delivery, at: .now)
    } catch {
      if error.isOutage { return failed(error) }
      succeeded()
      if error.code == 404, !delivery.isNew { return queue.didDisappear(delivery) }
      if error.code == 409, delivery.isNew { return queue.didExist(delivery) }
      if isMissingRight(error) {
        block(.events, error)
        return
      }
      queue.didRefuse(delivery)
      once("\(title): an event of \(delivery.event.pod.title) was refused: \(error)")
    }
  }

  private func logLost() {
    let lost = queue.drainLost()
    if lost > 0 { log("\(title): \(lost) events of pods were lost; it didn't answer for too long") }
  }

  // MARK: an API that doesn't answer, or doesn't permit

  private func succeeded() {
    outageUntil = nil
    outageDelay = settings.timing.firstOutage
    if failures >= 2 { log("\(title) answers") }
    failures = 0
  }

  private func failed(_ error: KubernetesError) {
    outageUntil = .now + (error.retryAfter ?? outageDelay)
    outageDelay = min(outageDelay * 2, settings.timing.longestOutage)
    failures += 1
    // A single failure may be a connection that the API has closed meanwhile, or the end of this
    // program.
    if failures == 2, !Task.isCancelled {
      log("\(title): \(error); pods are managed all the same, events and conditions are late")
    }
  }

  private func isMissingRight(_ error: KubernetesError) -> Bool {
    guard case .status(403, let text, _) = error else { return false }
    // Quotas, and namespaces that are being deleted, have the same status.
    return text.contains(" cannot ") && text.contains(" resource ")
  }

  @discardableResult
  private func block(_ right: Right, _ error: KubernetesError) -> Instant {
    let until = Instant.now + settings.timing.forbidden
    blocked[right] = until
    once(
      "\(title) doesn't permit \(right.rawValue): \(error); apply Packaging/kubernetes/events.yaml")
    return until
  }

  private func isBlocked(_ right: Right, at now: Instant) -> Bool {
    blocked[right].map { now < $0 } ?? false
  }

  private func once(_ line: String) {
    if noted.count < 1000, noted.insert(line).inserted { log(line) }
  }
}

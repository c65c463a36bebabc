import AsyncHTTPClient
import Control
import Glibc
import KubernetesAPI

/// Reports to the Kubernetes API what happens to pods. A notification only changes the reporter's
/// state and never waits for the API. `run` sends, one request at a time.
public actor PodReporter {
  typealias Instant = ContinuousClock.Instant

  public struct Settings: Sendable {
    /// The node's name, for events.
    public var node: String
    /// True if requests shrink while a pod sleeps.
    public var resizes: Bool
    public var timing: ReportTiming

    public init(node: String, resizes: Bool = false, timing: ReportTiming = ReportTiming()) {
      self.node = node
      self.resizes = resizes
      self.timing = timing
    }
  }

  /// The pod and the container of a worker.
  private struct WorkerLocation {
    var pod: PodReference
    var container: String
    var seen: Instant
  }

  let client: KubernetesClient
  /// The API's title, for messages.
  let title: String
  let settings: Settings
  let log: @Sendable (String) -> Void

  var states: [PodReference: PodState] = [:]
  var queue: EventQueue
  private var views: [PodReference: PodView] = [:]
  private var locations: [String: WorkerLocation] = [:]
  private var changed: [String: Instant] = [:]
  private var daemonAwaySince: Instant?

  // The state of sending.
  var outageUntil: Instant?
  var outageDelay: Duration
  /// The failures since the API's last answer.
  var failures = 0
  var blocked: [Right: Instant] = [:]
  var noted: Set<String> = []
  var pace = Pace()
  private var isWoken = false
  private var waiter: CheckedContinuation<Void, Never>?

  public init(
    _ access: KubernetesAccess, http: HTTPClient, settings: Settings,
    log: @escaping @Sendable (String) -> Void
  ) {
    client = KubernetesClient(access, http: http)
    title = "the Kubernetes API at \(escaped(access.url))"
    self.settings = settings
    self.log = log
    queue = EventQueue(node: settings.node, limits: settings.timing.events)
    outageDelay = settings.timing.firstOutage
  }

  // MARK: what happens

  /// Compares a new list of pods with the last one.
  ///
  /// - Parameters:
  ///   - isComplete: True if all runtimes have answered. A pod that isn't in the list has ended
  ///     then.
  ///   - began: The time before the runtimes and the daemon were asked.
  public func looked(
    _ pods: [PodView], isComplete: Bool, began: ContinuousClock.Instant
  ) {
    let now = Instant.now
    daemonAwaySince = nil
    changed = changed.filter { $0.value >= began }
    for view in pods {
      for container in view.containers {
        guard let worker = container.worker else { continue }
        locations[worker] = WorkerLocation(pod: view.pod, container: container.name, seen: now)
      }
      let view = withNewerEvents(view)
      views[view.pod] = view
      want(view)
    }
    // An event about a worker may come after its end was noticed.
    locations = locations.filter { now - $0.value.seen < .seconds(60) }
    if isComplete {
      let present = Set(pods.map(\.pod))
      views = views.filter { present.contains($0.key) }
      states = states.filter { present.contains($0.key) }
    }
    wake()
  }

  /// The daemon doesn't answer.
  public func daemonDidDisconnect() {
    let now = Instant.now
    let since = daemonAwaySince ?? now
    daemonAwaySince = since
    guard now - since >= settings.timing.daemonTimeout else { return }
    for (pod, view) in views where view.isManaged {
      states[pod]?.want(HibernatedCondition.withoutDaemon, asleep: nil)
    }
    wake()
  }

  /// The daemon has sent an event.
  public func happened(_ record: EventRecord) {
    guard let worker = record.worker, let location = locations[worker] else { return }
    let now = Instant.now
    if let happening = Wording.happening(record, of: location.pod, container: location.container) {
      enqueue(happening)
    }
    guard record.kind == "state", let state = record.to, var view = views[location.pod],
      let number = view.containers.firstIndex(where: { $0.worker == worker })
    else { return }
    changed[worker] = now
    view.containers[number].state = state
    view.containers[number].secondsInState = 0
    if record.code == "released" { view.containers[number].worker = nil }
    views[location.pod] = view
    want(view)
    wake()
  }

  /// The daemon has adopted a container.
  public func didAdopt(
    _ pod: PodReference, container: String, as worker: String, terms: String
  ) {
    locations[worker] = WorkerLocation(pod: pod, container: container, seen: .now)
    enqueue(
      PodOccurrence(
        "Adopted", "Container \(container) is managed by Dormouse: \(terms)", of: pod,
        container: container))
  }

  /// The daemon has refused a container.
  public func didRefuse(_ pod: PodReference, container: String, reason: String) {
    enqueue(
      PodOccurrence(
        "NotAdopted", "Container \(container) isn't managed by Dormouse: \(reason)", of: pod,
        container: container, kind: .warning))
  }

  func enqueue(_ happening: PodOccurrence) {
    queue.record(happening, at: .now, wall: Int64(time(nil)))
    wake()
  }

  /// Returns the view with later events: it may be older than the last event.
  private func withNewerEvents(_ view: PodView) -> PodView {
    var view = view
    for (number, container) in view.containers.enumerated() {
      guard let worker = container.worker, changed[worker] != nil,
        let newer = views[view.pod]?.containers.first(where: { $0.worker == worker })
      else { continue }
      view.containers[number].state = newer.state
      view.containers[number].secondsInState = 0
    }
    return view
  }

  private func want(_ view: PodView) {
    if view.isStatic { return }
    var state =
      states[view.pod]
      ?? PodState(view.pod, timing: settings.timing, resizes: settings.resizes)
    state.want(HibernatedCondition.wanted(view), asleep: footprints(view))
    states[view.pod] = state
  }

  /// Returns the footprints; nil if the pod is awake, or fell asleep just now.
  private func footprints(_ view: PodView) -> [String: Int64]? {
    let minSeconds = settings.timing.resizeAfter / .seconds(1)
    guard view.isAsleep, view.containers.allSatisfy({ $0.secondsInState >= minSeconds }) else {
      return nil
    }
    return Dictionary(view.containers.map { ($0.name, $0.footprint) }) { $0 + $1 }
  }

  // MARK: the end

  /// Restores requests and removes conditions: nothing updates them from now on. Call it after
  /// `run`.
  public func finish() async {
    for pod in states.keys { states[pod]?.want(nil, asleep: nil) }
    outageUntil = nil
    let deadline = Instant.now + settings.timing.end
    while Instant.now < deadline, outageUntil == nil, let work = nextWork(at: .now, ending: true) {
      await perform(work)
    }
    let left = states.values.count { $0.step(at: .now) != nil }
    if left > 0 { log("\(title): \(left) pods keep a condition or requests of Dormouse") }
  }

  // MARK: waiting

  func wake() {
    guard let waiter else {
      isWoken = true
      return
    }
    self.waiter = nil
    waiter.resume()
  }

  /// Waits until there is work, that time is reached, or the task is cancelled.
  func wait(until time: Instant?) async {
    if isWoken || Task.isCancelled {
      isWoken = false
      return
    }
    let timer = time.map { time in
      Task {
        // If the task is cancelled, the wait is over.
        try? await Task.sleep(until: time, clock: .continuous)
        if !Task.isCancelled { self.wake() }
      }
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { waiter = $0 }
    } onCancel: {
      Task { await self.wake() }
    }
    timer?.cancel()
    isWoken = false
  }
}

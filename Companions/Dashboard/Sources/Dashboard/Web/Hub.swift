import Control
import Synchronization

/// The hub of the open pages: it sends to each what it shows. One poll of the daemon serves all of
/// them.
final class Hub: Sendable {
  private struct Viewer {
    /// The worker whose page it is; nil for the overview.
    var worker: String?
    var continuation: AsyncStream<ServerEvent>.Continuation
  }

  private struct State {
    var viewers: [Int: Viewer] = [:]
    var nextID = 0
    var fleet = Fleet()
    /// True if `fleet` is from a poll since the first page was opened.
    var isCurrent = false
    /// The latest events, the oldest first.
    var events: [EventRecord] = []
    var logs: [String: LogLocation] = [:]
    var kinds: [String: (measured: Double, kinds: FootprintKinds)] = [:]
  }

  /// The first event of each stream.
  private struct Hello: Encodable {
    /// The token for requests that change something.
    var token: String
    var version: String
  }

  private let state = Mutex(State())
  private let began = ContinuousClock.now
  private let hello: ServerEvent
  /// Rings when a page is opened, and when something has probably changed.
  let wakeup = Wakeup()
  /// Rings when a page is opened.
  let eventWakeup = Wakeup()

  static let maxViewers = 32
  private static let maxEvents = 100

  init(actionToken: AccessToken) {
    hello = ServerEvent("hello", Hello(token: actionToken.text, version: Dormouse.version))
  }

  /// The time of this server's clock.
  private var seconds: Double { (ContinuousClock.now - began) / .seconds(1) }

  var hasViewers: Bool { state.withLock { !$0.viewers.isEmpty } }

  // MARK: pages

  /// Opens a page, and returns the stream of its events; nil if too many pages are open. The stream
  /// ends with `leave`, or when its reader ends.
  func join(worker: String?) -> (id: Int, stream: AsyncStream<ServerEvent>)? {
    let (stream, continuation) = AsyncStream<ServerEvent>.makeStream(
      bufferingPolicy: .bufferingNewest(256))
    let now = seconds
    let id: Int? = state.withLock { state in
      guard state.viewers.count < Self.maxViewers else { return nil }
      state.nextID += 1
      state.viewers[state.nextID] = Viewer(worker: worker, continuation: continuation)
      continuation.yield(hello)
      let points = state.fleet.allPoints(at: now)
      continuation.yield(
        ServerEvent("history", worker.map { [$0: points[$0] ?? []] } ?? points))
      if worker == nil {
        if state.isCurrent { continuation.yield(ServerEvent("fleet", state.fleet.report)) }
        for event in state.events { continuation.yield(ServerEvent("past", event)) }
      }
      return state.nextID
    }
    guard let id else { return nil }
    wakeup.signal()
    eventWakeup.signal()
    return (id, stream)
  }

  func leave(_ id: Int) {
    state.withLock { state in
      state.viewers.removeValue(forKey: id)?.continuation.finish()
      if state.viewers.isEmpty { state.isCurrent = false }
    }
  }

  /// Sends lines of a log to one page.
  func send(_ event: ServerEvent, to id: Int) {
    state.withLock { _ = $0.viewers[id]?.continuation.yield(event) }
  }

  /// The location of the worker's log; nil while it is unknown.
  func log(of worker: String) -> LogLocation? { state.withLock { $0.logs[worker] } }

  // MARK: what the daemon says

  /// The reports that the next poll asks for.
  var wishes: DaemonLink.Wishes {
    state.withLock { state in
      let watched = Set(state.viewers.values.compactMap(\.worker)).sorted()
      return DaemonLink.Wishes(watched: watched, snapshots: state.fleet.unknownSnapshots)
    }
  }

  /// Returns the workers whose page is open and whose memory wasn't measured during the last 5 s.
  /// Measuring a large worker takes milliseconds of the worker's time.
  func unmeasured(in answer: Answer) -> [WorkerReport] {
    let now = seconds
    return state.withLock { state in
      state.viewers.values.compactMap(\.worker).compactMap { name in
        if let measurement = state.kinds[name], now - measurement.measured < 5 { return nil }
        return answer.details[name] ?? nil
      }
    }
  }

  func record(_ kinds: FootprintKinds?, of worker: String) {
    let now = seconds
    state.withLock { state in
      state.kinds[worker] = kinds.map { (now, $0) }
    }
  }

  func publish(_ answer: Answer) {
    let now = seconds
    state.withLock { state in
      state.fleet.merge(answer, at: now)
      state.isCurrent = true
      publishOverview(&state)
      for (name, viewers) in watchers(state) {
        let report = answer.details[name] ?? nil
        state.logs[name] = report.flatMap(LogLocation.init)
        for viewer in viewers { viewer.continuation.yield(page(name, report, answer, state)) }
      }
    }
  }

  /// Publishes that no daemon answers, or that it is slow (`isSlow`).
  func publish(problem: String, isSlow: Bool) {
    state.withLock { state in
      if isSlow { state.fleet.wait(problem) } else { state.fleet.lose(problem) }
      state.isCurrent = true
      publishOverview(&state)
      let missing = ServerEvent("missing", MissingPage(problem: problem))
      for viewer in watchers(state).values.joined() { viewer.continuation.yield(missing) }
    }
  }

  func publish(_ events: [EventRecord]) {
    guard !events.isEmpty else { return }
    state.withLock { state in
      state.events += events
      if state.events.count > Self.maxEvents {
        state.events.removeFirst(state.events.count - Self.maxEvents)
      }
      for event in events {
        let sent = ServerEvent("event", event)
        for viewer in state.viewers.values
        where viewer.worker == nil || viewer.worker == event.worker {
          viewer.continuation.yield(sent)
        }
      }
    }
    wakeup.signal()
  }

  // MARK: parts

  private func publishOverview(_ state: inout State) {
    let event = ServerEvent("fleet", state.fleet.report)
    for viewer in state.viewers.values where viewer.worker == nil {
      viewer.continuation.yield(event)
    }
  }

  private func watchers(_ state: State) -> [String: [Viewer]] {
    var watchers: [String: [Viewer]] = [:]
    for viewer in state.viewers.values {
      if let worker = viewer.worker { watchers[worker, default: []].append(viewer) }
    }
    return watchers
  }

  private func page(
    _ name: String, _ report: WorkerReport?, _ answer: Answer, _ state: State
  ) -> ServerEvent {
    guard let report else {
      // The worker of a new page is asked for with the next poll.
      let isAsked = answer.details.keys.contains(name)
      return isAsked
        ? ServerEvent("missing", MissingPage(problem: "There is no worker named \(escaped(name))."))
        : hello
    }
    let card = state.fleet.report.workers.first { $0.name == name }
    return ServerEvent(
      "worker",
      WorkerPage(
        worker: report, shown: ShownState(of: report).text, explanation: answer.explanations[name],
        kinds: state.kinds[name]?.kinds,
        command: shellText(report.command), terminated: card?.terminated,
        hibernated: card?.hibernated, snapshot: state.fleet.snapshot(of: name)))
  }
}

import Control
import Glibc
import Journal
import Linux

/// A worker of a daemon, by name: its current processes, and the daemon's events about it.
final class WorkerSource: RecordingSource {
  private var client: ControlClient
  private var root: ProcessIdentity?
  private var group: WorkerCgroup?
  private var lastTree = ProcessTree(processes: [])
  private var lastScan: Int64 = .min
  private var askedAt: Int64 = .min
  /// The wall clock when the recording began. The times of events are computed from it.
  private let began: WallTime

  let subject = RecordingHeader.Subject.worker
  let name: String
  private(set) var command: [String] = []
  private(set) var state: String?
  var pid: Int32? { root?.pid }
  var descriptor: Int32 { client.descriptor }

  init(
    _ name: String, client: consuming ControlClient, began: WallTime
  ) throws(RecordingFailure) {
    self.name = name
    self.client = client
    self.began = began
    // Subscribes to the events of all workers: pressure and terminations concern this one, too.
    try asking { () throws(ControlError) in
      let id = try self.client.send(.events) { $0.follow = true }
      _ = try self.client.response(to: id)
    }
    try ask()
  }

  /// Asks the daemon for the worker's current process, command and cgroup.
  private func ask() throws(RecordingFailure) {
    askedAt = Clocks.monotonic
    let response = try asking { () throws(ControlError) in
      try client.perform(.status, worker: name)
    }
    // A daemon that ends refuses what it hasn't answered yet. `updates` ends the recording.
    if response.result == .refused, state != nil { return }
    guard response.result == .done, let report = response.workers?.first else {
      throw .unknownWorker(escaped(response.text))
    }
    if state == nil { state = report.state }
    command = report.command
    // An identity is nil if the process has ended.
    group = report.cgroup.flatMap { try? WorkerCgroup(path: $0.path) }
    root = report.pid.flatMap { try? ProcessIdentity.current(of: $0) }
    lastScan = .min
  }

  func updates(at now: Double) throws(RecordingFailure) -> RecordingUpdates {
    var updates = RecordingUpdates()
    do throws(ControlError) {
      while let event = try client.nextEvent(within: .zero) {
        if let mark = mark(of: event, at: now) { updates.marks.append(mark) }
      }
    } catch {
      guard case .closedEarly = error else { throw .control(error) }
      updates.end = RecordingEnd(at: now, reason: .gone)
    }
    return updates
  }

  private func mark(of event: EventRecord, at now: Double) -> FootprintMark? {
    guard event.worker == name || event.worker == nil, let kind = event.markKind else { return nil }
    return FootprintMark(
      at: moment(of: event, now), kind: kind, text: event.text, from: event.from, to: event.to,
      seconds: event.seconds, freed: event.freed)
  }

  /// The moment of an event, in seconds since the recording began. The daemon gives the time by the
  /// wall clock. If that clock has been set meanwhile, the moment is now.
  private func moment(of event: EventRecord, _ now: Double) -> Double {
    guard let time = WallTime(text: event.time) else { return now }
    // The event's time is in whole milliseconds, rounded down, so it is up to 1 ms early.
    let moment = Double(time.nanoseconds - began.nanoseconds) / 1e9
    return (now - moment).magnitude < 5 ? min(max(moment, 0), now) : now
  }

  func tree() throws(RecordingFailure) -> ProcessTree {
    let now = Clocks.monotonic
    if root?.hasEnded != false {
      root = nil
      // The worker may be started again. A start is an event, but an adoption may not be.
      if now - 300_000_000 >= askedAt {
        do throws(RecordingFailure) { try ask() } catch {
          // The daemon ends its workers and then itself: `updates` ends the recording.
          guard case .control(.closedEarly) = error else { throw error }
        }
      }
    }
    guard let root else { return ProcessTree(processes: []) }
    // Reading the processes of a cgroup is cheap.
    if group != nil || now - 250_000_000 >= lastScan {
      do throws(SystemCallError) {
        lastTree = try ProcessTree.discover(root: root, session: root.pid, cgroup: group)
        lastScan = now
      } catch {
        // The worker's cgroup doesn't exist any more, so the worker has ended.
        if error.code != ENODEV, !error.meansVanished { throw .system(error) }
        lastTree = ProcessTree(processes: [])
      }
    }
    return lastTree
  }

  /// The daemon warns the worker, as for `dormouse warn`, and reports the warning in its events.
  func warn(at now: Double) throws(RecordingFailure) -> FootprintMark? {
    _ = try asking { () throws(ControlError) in try client.send(.warn, worker: name) }
    return nil
  }

  func handle(_ signal: SignalQueue.Arrival) -> Bool { true }
  func release() {}
}

extension EventRecord {
  /// The kind of the event's mark. nil: the event has no mark.
  fileprivate var markKind: FootprintMark.Kind? {
    switch kind {
    case "state": return .state
    case "failed", "refused": return .failed
    case "pressure": return .pressure
    case "jetsam": return .jetsam
    case "lost": return .lost
    case "memory":
      switch (occasion, freed) {
      case ("warning"?, nil): return .warning
      case ("warning"?, _): return .returned
      case ("background"?, _): return .shed
      case ("purge"?, _): return .purge
      default: return .note
      }
    default: return .note
    }
  }
}

import Control
import Lifecycle
import Policy

/// The wrappers that have registered with the daemon, and their last reports. Each entry exists as
/// long as the wrapper's connection.
struct WrapperRegistry {
  struct Entry {
    var report: WrapperReport
    var at: Instant
  }

  private var entries: [ClientID: Entry] = [:]
  /// By worker, the client whose reports the engine's worker of that name follows: the first that
  /// registered, if there are several.
  private var leaders: [WorkerID: ClientID] = [:]

  /// Records a wrapper's report.
  ///
  /// - Returns: why it isn't accepted; nil if it is.
  mutating func register(
    _ report: WrapperReport?, from client: ClientID, at now: Instant
  ) -> String? {
    guard let report else { return "`register` needs a wrapper" }
    if !NameRule.allows(report.worker.name) { return "use \(NameRule.text)" }
    if let earlier = entries[client]?.report.worker.name,
      earlier != report.worker.name
    {
      return "this connection has already registered \(earlier); each wrapper needs its own"
    }
    entries[client] = Entry(report: report, at: now)
    return nil
  }

  /// Removes a client.
  ///
  /// - Returns: all workers that it led.
  mutating func forget(_ client: ClientID) -> [WorkerID] {
    entries[client] = nil
    let led = leaders.filter { $0.value == client }.keys.sorted()
    for id in led { leaders[id] = nil }
    return led
  }

  /// Makes a client the leader of a worker.
  ///
  /// - Returns: false if another client is its leader.
  mutating func lead(_ worker: WorkerID, _ client: ClientID) -> Bool {
    if let leader = leaders[worker] { return leader == client }
    leaders[worker] = client
    return true
  }

  func leads(_ worker: WorkerID) -> Bool { leaders[worker] != nil }

  func leader(of worker: WorkerID) -> ClientID? { leaders[worker] }

  func entry(from client: ClientID) -> Entry? { entries[client] }

  func entry(of worker: String?) -> Entry? {
    if let worker, let leader = leaders[WorkerID(worker)], let entry = entry(from: leader) {
      return entry
    }
    // If several wrappers have a worker of that name, the first one counts.
    return entries.filter { $0.value.report.worker.name == worker }
      .min { $0.key.number < $1.key.number }?.value
  }

  /// All reports by name, with their ages as of now.
  func reports(at now: Instant) -> [WorkerReport] {
    entries.values.map { $0.current(at: now) }.sorted { $0.name < $1.name }
  }
}

extension WrapperRegistry.Entry {
  func current(at now: Instant) -> WorkerReport {
    var worker = report.worker
    let elapsed = (now - at).seconds
    worker.secondsInState += elapsed
    worker.secondsAsleep = worker.secondsAsleep.map { $0 + elapsed }
    worker.lastWake?.secondsAgo += elapsed
    // A foreground worker is in use.
    if worker.state != WorkerState.foreground.rawValue { worker.secondsSinceUse += elapsed }
    // The activity was true only at the time of the report.
    worker.activity = nil
    worker.wrapper = report.pid
    return worker
  }
}

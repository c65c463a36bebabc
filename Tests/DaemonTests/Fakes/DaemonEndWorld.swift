import Lifecycle

@testable import Daemon

/// Workers that end, wake and are given back when a test says so.
final class DaemonEndWorld: DaemonEndHost, OrderlyStopHost {
  private var known: [String: EndingWorker] = [:]
  private var needs: [String: [WorkerID]] = [:]
  private(set) var calls: [String] = []
  private(set) var lines: [String] = []
  private var answers: [String: (Answer) -> Void] = [:]
  private var releases: [String: (String?) -> Void] = [:]

  var workers: [EndingWorker] { known.values.sorted { $0.id < $1.id } }
  var isAdopting: Bool { known.values.contains(where: \.isAdopting) }
  var isEngineQuiet = true
  var unadopted: [(id: WorkerID, pid: Int32)] = []
  let timers = FakeTimers()

  func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    calls.append("wake \(id)")
    answers[id.name] = answer
  }
  var alive: [WorkerID] { workers.filter(\.isAlive).map(\.id) }
  func needs(of id: WorkerID) -> [WorkerID] { needs[id.name] ?? [] }
  func isExternal(_ id: WorkerID) -> Bool { known[id.name]?.isExternal == true }
  func stop(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    calls.append("stop \(id)")
    answers[id.name] = answer
  }
  func release(_ id: WorkerID, then: @escaping (_ failure: String?) -> Void) {
    calls.append("release \(id)")
    releases[id.name] = then
  }
  func freezes(_ id: WorkerID) -> Bool { id.name == "frozen" }
  func refuseWaitingStarts() {
    if calls.last != "refuse starts" { calls.append("refuse starts") }
  }
  func save(_ id: WorkerID, _ state: WorkerState) { calls.append("save \(id) \(state)") }
  func closeListeners() { calls.append("close listeners") }
  func announceEnd(_ text: String) { calls.append("announce") }
  func log(_ priority: DaemonLog.Priority, _ text: String) { lines.append(text) }

  // MARK: what a test does

  func add(_ name: String, _ state: WorkerState? = .background, needs: [String] = []) {
    known[name] = EndingWorker(id: WorkerID(name), state: state)
    self.needs[name] = needs.map { WorkerID($0) }
  }
  func set(_ name: String, _ change: (inout EndingWorker) -> Void) {
    if var worker = known[name] {
      change(&worker)
      known[name] = worker
    }
  }
  func remove(_ name: String) { known[name] = nil }
  func answer(_ name: String, _ code: Answer.Code = .done, _ text: String = "") {
    answers.removeValue(forKey: name)?(Answer(code, text))
  }
  func isReleased(_ name: String, _ failure: String? = nil) {
    if failure == nil { remove(name) }
    releases.removeValue(forKey: name)?(failure)
  }

  /// What was asked of workers, without what is done around that.
  var asked: [String] {
    calls.filter { $0.hasPrefix("stop") || $0.hasPrefix("wake") || $0.hasPrefix("release") }
  }

  func makeEnd(_ phase: DaemonPhase = DaemonPhase()) -> DaemonEnd {
    DaemonEnd(
      host: self, stopping: OrderlyStop(self, timers: timers), timers: timers, phase: phase)
  }
}

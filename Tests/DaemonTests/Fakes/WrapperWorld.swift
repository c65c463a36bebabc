import Control
import Lifecycle
import Linux
import Policy
import Testing

@testable import Daemon

/// A daemon's engine with registered wrappers that answer when a test says so. It has no sockets
/// and no processes.
final class WrapperWorld: WrapperHost {
  struct Ask {
    let request: ControlRequest
    let socket: String
    let timeout: Duration
    let respond: (ControlResponse) -> Void
  }

  let timers = FakeLoop()
  let workers = WorkerRegistry()
  let driver: EngineDriver
  private(set) lazy var wrappers = RegisteredWrappers(
    driver: driver, workers: workers, clock: timers, host: self)

  private(set) var asks: [Ask] = []
  /// All requests so far, as `verb worker`.
  private(set) var asked: [String] = []
  var whenAsked: (ControlRequest) -> Void = { _ in }
  /// Directives about workers that aren't wrapped, such as `launch web`.
  private(set) var others: [Directive] = []
  private(set) var logged: [String] = []
  /// The pid at the other end of each connection, according to the kernel.
  var processes: [ClientID: Int32] = [:]
  private(set) var killed: [(pid: Int32, before: Instant)] = []
  var kill: Result<Bool, SystemCallError> = .success(true)

  init(_ policy: LifecyclePolicy = LifecyclePolicy(name: "test")) {
    driver = .forTest(timers, EventNotes(), policy: policy)
    driver.connect([]) { [weak self] in
      if let self, !wrappers.execute($0) { others.append($0) }
    }
  }

  // MARK: actions of a test

  static func report(
    _ name: String, _ state: String = "background", megabytes: Int64 = 90, pid: Int32 = 77,
    mayBeTerminated: Bool? = nil
  ) -> WrapperReport {
    var worker = WorkerReport(name: name, state: state)
    worker.footprint = megabytes << 20
    return WrapperReport(
      pid: pid, socket: "/run/\(name).sock", worker: worker, mayBeTerminated: mayBeTerminated)
  }

  /// A report of the wrapper that most tests use.
  func report(_ state: String, megabytes: Int64 = 90) -> WrapperReport {
    Self.report("clangd", state, megabytes: megabytes)
  }

  @discardableResult
  func register(_ report: WrapperReport, _ client: UInt64 = 1) -> String? {
    processes[ClientID(number: client)] = report.pid
    return wrappers.register(report, from: ClientID(number: client))
  }

  func leave(_ client: UInt64 = 1) { wrappers.didDisconnect(ClientID(number: client)) }

  /// Lets time pass, and handles the engine's deadlines.
  func pass(_ time: Duration) {
    let end = timers.now + time
    while timers.now < end {
      timers.advance(by: min(.milliseconds(500), end - timers.now))
      driver.passDeadlines()
    }
  }

  /// Sets the pressure level, and waits until the ladder begins.
  func press(_ level: PressureLevel) {
    driver.send(.pressureSet(level, for: .seconds(3600)))
    pass(.seconds(1))
  }

  /// Adds a worker of the daemon itself.
  func declare(_ name: String) {
    let worker = WorkerUnit.forTest(name)
    workers[worker.id] = worker
    driver.send(.added(worker.id, worker.profile))
  }

  func state(_ name: String) -> WorkerState? { driver.state.state(of: WorkerID(name)) }

  /// Answers the earliest request that has no answer.
  func answer(
    _ result: ControlResponse.Result, _ text: String = "", _ worker: WorkerReport? = nil
  ) {
    guard !asks.isEmpty else {
      Issue.record("no wrapper was asked for anything")
      return
    }
    asks.removeFirst().respond(
      ControlResponse(id: 1, result: result, text: text, workers: worker.map { [$0] }))
  }

  func answer(to request: UInt64, _ text: String) {
    guard let index = asks.firstIndex(where: { $0.request.id == request }) else { return }
    asks.remove(at: index).respond(ControlResponse(id: request, result: .done, text: text))
  }

  // MARK: WrapperHost

  func ask(
    _ request: ControlRequest, at socket: String, timeout: Duration,
    then respond: @escaping (ControlResponse) -> Void
  ) {
    asked.append("\(request.verb) \(request.worker ?? "")")
    asks.append(Ask(request: request, socket: socket, timeout: timeout, respond: respond))
    whenAsked(request)
  }

  func process(of client: ClientID) -> Int32? { processes[client] }

  func kill(_ pid: Int32, startedBefore moment: Instant) throws(SystemCallError) -> Bool {
    killed.append((pid, moment))
    return try kill.get()
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) { logged.append(text) }
}

import Control
import Glibc
import JSONLines
import Lifecycle
import Linux
import Policy

/// `ps` and `status`: one answer of the reports of workers, the daemon's own, and, of one worker, of what it wants
/// to be shown of it. Belongs to the loop's thread.
final class StatusReporter {
  private let driver: EngineDriver
  private unowned let source: any ReportSource
  private let clock: any Timers

  /// The source isn't kept alive.
  init(_ driver: EngineDriver, _ source: any ReportSource, clock: any Timers) {
    self.driver = driver
    self.source = source
    self.clock = clock
  }

  /// Includes the worker's own snapshot, which is on disk, if the request is about one worker.
  func report(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    guard request.verb == .status, let name = request.worker else {
      return source.withRecentScan { [unowned self] in respond(report(request, $0)) }
    }
    // Of one worker, what is true now.
    guard let process = source.facts(of: WorkerID(name))?.process, process.cgroup == nil else {
      return addSnapshot(to: report(request, nil), request, then: respond)
    }
    source.scanProcesses { [unowned self] scan in
      addSnapshot(to: report(request, scan), request, then: respond)
    }
  }

  /// - Parameter scan: for workers without a cgroup.
  func report(_ request: ControlRequest, _ scan: ProcessScan?) -> ControlResponse {
    if request.verb == .status, let name = request.worker {
      return one(name, request: request.id, scan: scan)
    }
    let now = clock.now
    let own = driver.state.snapshots(at: now).filter { !source.leads($0.worker) }.map {
      report($0, scan, at: now, withGroup: request.verb == .status)
    }
    let reports = own + source.wrappedReports(at: now)
    var daemon = daemonReport(at: now)
    if request.verb == .status { daemon.measurements = source.measurements(at: now) }
    return ControlResponse(
      id: request.id, result: .done,
      text: reports.count == 1 ? "1 worker" : "\(reports.count) workers", workers: reports,
      daemon: daemon)
  }

  private func one(_ name: String, request: UInt64, scan: ProcessScan?) -> ControlResponse {
    let now = clock.now
    if source.isWrapped(name), var report = source.wrappedReport(of: name, at: now) {
      report.savings = source.savings(of: WorkerID(name))
      return ControlResponse(
        id: request, result: .done, text: "\(name) is managed by `dormouse wrap`",
        workers: [report],
        daemon: daemonReport(at: now))
    }
    guard let snapshot = driver.state.snapshot(of: WorkerID(name), at: now) else {
      return ControlResponse(
        id: request, result: .unknownWorker, text: "there is no worker named \(name)")
    }
    var report = report(snapshot, scan, at: now, withGroup: true)
    report.savings = source.savings(of: snapshot.worker)
    report.activity = source.facts(of: snapshot.worker)?.activity?()
    return ControlResponse(
      id: request, result: .done, text: "\(name) is \(snapshot.state.spoken)",
      workers: [report], daemon: daemonReport(at: now))
  }

  /// - Parameter withGroup: with what only `status` reports.
  private func report(
    _ snapshot: WorkerSnapshot, _ scan: ProcessScan?, at now: Instant, withGroup: Bool
  ) -> WorkerReport {
    var report = WorkerReporter(
      snapshot: snapshot, facts: source.facts(of: snapshot.worker), scan: scan, now: now
    ).report(withGroup: withGroup)
    if withGroup { report.counters = source.counters(of: snapshot.worker, at: now) }
    return report
  }

  private func daemonReport(at now: Instant) -> DaemonReport {
    DaemonReport(driver.state, source.daemonFacts(), at: now)
  }

  private func addSnapshot(
    to response: ControlResponse, _ request: ControlRequest,
    then respond: @escaping (ControlResponse) -> Void
  ) {
    guard let report = response.workers?.first, source.facts(of: WorkerID(report.name)) != nil
    else { return respond(response) }
    source.loadSnapshot(of: report.name) { snapshot in
      var response = response
      response.workers = [
        Self.add(snapshot, to: report, content: request.withSnapshot == true)
      ]
      respond(response)
    }
  }

  private static func add(
    _ snapshot: SnapshotStore.Snapshot?, to report: WorkerReport, content isWanted: Bool
  ) -> WorkerReport {
    guard let snapshot else { return report }
    let text = snapshot.isText ? String(decoding: snapshot.content, as: UTF8.self) : nil
    var report = report
    report.snapshot = SnapshotReport(
      mime: snapshot.mime, size: Int64(snapshot.content.count), text: text,
      data: isWanted && !snapshot.isText ? Base64.encode(snapshot.content) : nil)
    return report
  }
}

extension DaemonReport {
  init(_ engine: Engine, _ facts: DaemonFacts, at now: Instant) {
    self.init(
      pid: getpid(), version: facts.version, policy: engine.policy.name,
      mode: engine.policy.mode.rawValue, pressure: engine.pressure.name,
      budget: engine.budget.bytes, available: engine.available.bytes,
      budgetIsHost: engine.policy.memory == .host, freezer: facts.freezer,
      stateDirectory: facts.stateDirectory)
    configuration = facts.configuration
    if budgetIsHost { limitedBy = facts.limitedBy }
    if let set = engine.setPressure, now < set.until {
      pressureSet = set.level.name
      pressureSetSeconds = (set.until - now) / .seconds(1)
    }
    writtenInDay = facts.imageCosts.bytes
    hibernatingSecondsInDay = Double(facts.imageCosts.milliseconds) / 1000
    imagesInDay = facts.imageCosts.images
    dailyWrites = engine.policy.hibernate.disk.dailyWrites.bytes
    shadow = ShadowReport(engine.shadowSummary)
    savings = facts.savings
  }
}

import Control
import JSONLines
import Lifecycle
import Linux
import Policy

/// Answers `ps` and `status`: the reports of workers and of the daemon. An answer about one worker
/// includes the snapshot that the worker wants to be shown. It belongs to the event loop's thread.
struct StatusReporter {
  let facts: WorkerFactsReader
  let daemon: DaemonReporter
  let wrappers: RegisteredWrappers
  let scanner: ProcessScanner
  let snapshots: SnapshotKeeper

  /// Answers a request. If it is about one worker, the answer includes the worker's snapshot, which
  /// is on disk.
  func report(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    guard request.verb == .status, let name = request.worker else {
      return scanner.withRecentScan(of: facts.workers.values) { respond(report(request, $0)) }
    }
    // A report of one worker has the state as of now.
    guard let process = facts.workers[WorkerID(name)]?.process, process.cgroup == nil else {
      return addSnapshot(to: report(request, nil), request, then: respond)
    }
    scanner.scanProcesses { scan in
      addSnapshot(to: report(request, scan), request, then: respond)
    }
  }

  /// - Parameter scan: a scan of processes, for workers without a cgroup.
  func report(_ request: ControlRequest, _ scan: ProcessScan?) -> ControlResponse {
    if request.verb == .status, let name = request.worker {
      return one(name, request: request.id, scan: scan)
    }
    let now = facts.clock.now
    let managed = daemon.driver.state.snapshots(at: now).filter { !wrappers.leads($0.worker) }.map {
      report($0, scan, at: now, withGroup: request.verb == .status)
    }
    let reports = managed + wrappers.reports()
    var daemonReport = daemon.report(at: now)
    if request.verb == .status { daemonReport.measurements = daemon.measurements(at: now) }
    return ControlResponse(
      id: request.id, result: .done,
      text: counted(reports.count, "worker"), workers: reports, daemon: daemonReport)
  }

  private func one(_ name: String, request: UInt64, scan: ProcessScan?) -> ControlResponse {
    let now = facts.clock.now
    if wrappers.isWrapped(name), var report = wrappers.report(of: name) {
      report.savings = facts.chronicle.days.savings(of: WorkerID(name), at: now)
      return ControlResponse(
        id: request, result: .done, text: "\(name) is managed by `dormouse wrap`",
        workers: [report], daemon: daemon.report(at: now))
    }
    guard let snapshot = daemon.driver.state.snapshot(of: WorkerID(name), at: now) else {
      return ControlResponse(
        id: request, result: .unknownWorker, text: "there is no worker named \(name)")
    }
    var report = report(snapshot, scan, at: now, withGroup: true)
    report.savings = facts.chronicle.days.savings(of: snapshot.worker, at: now)
    report.activity = facts.activity(of: snapshot.worker)
    return ControlResponse(
      id: request, result: .done, text: "\(name) is \(snapshot.state.text)",
      workers: [report], daemon: daemon.report(at: now))
  }

  /// - Parameter withGroup: whether to include what only `status` reports.
  private func report(
    _ snapshot: WorkerSnapshot, _ scan: ProcessScan?, at now: Instant, withGroup: Bool
  ) -> WorkerReport {
    var report = WorkerReporter(
      snapshot: snapshot, facts: facts.read(snapshot.worker), scan: scan, now: now
    ).report(withGroup: withGroup)
    facts.describe(snapshot.worker, in: &report)
    if withGroup {
      report.counters = WorkerCounters(
        facts.chronicle.days.tally(of: snapshot.worker, at: now),
        written: facts.workers[snapshot.worker]?.imageBytesWritten ?? 0)
    }
    return report
  }

  private func addSnapshot(
    to response: ControlResponse, _ request: ControlRequest,
    then respond: @escaping (ControlResponse) -> Void
  ) {
    guard var report = response.workers?.first, facts.workers[WorkerID(report.name)] != nil
    else { return respond(response) }
    snapshots.load(report.name) { snapshot in
      guard let snapshot else { return respond(response) }
      let text = snapshot.isText ? String(decoding: snapshot.content, as: UTF8.self) : nil
      let wantsData = request.withSnapshot == true && !snapshot.isText
      report.snapshot = SnapshotReport(
        mime: snapshot.mime, size: Int64(snapshot.content.count), text: text,
        data: wantsData ? Base64.encode(snapshot.content) : nil)
      var response = response
      response.workers = [report]
      respond(response)
    }
  }
}

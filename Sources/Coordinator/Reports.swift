import Control
import Glibc
import Lifecycle
import Linux
import Policy

// What `ps`, `status` and `jetsam` show.

extension Daemon {
  func report(_ request: ControlRequest) -> ControlResponse {
    let now = EventLoop.now
    if request.verb == .status, let name = request.worker {
      guard let snapshot = engine.snapshot(of: WorkerID(name), at: now) else {
        return ControlResponse(
          id: request.id, result: .unknownWorker, text: "there is no worker named \(name)")
      }
      return ControlResponse(
        id: request.id, result: .done, text: "\(name) is \(snapshot.state.spoken)",
        workers: [report(snapshot, nil, at: now)], daemon: daemonReport())
    }
    let scan = scanForWorkers(workers.values)
    let reports = engine.snapshots(at: now).map { report($0, scan, at: now) }
    return ControlResponse(
      id: request.id, result: .done,
      text: reports.count == 1 ? "1 worker" : "\(reports.count) workers", workers: reports,
      daemon: daemonReport())
  }

  private func report(
    _ snapshot: WorkerSnapshot, _ scan: ProcessScan?, at now: Instant
  ) -> WorkerReport {
    var report = WorkerReport(name: snapshot.worker.name, state: snapshot.state.rawValue)
    report.band = snapshot.band
    report.importance = snapshot.profile.importance
    report.footprint = snapshot.footprint.bytes
    report.peakFootprint = snapshot.peakFootprint.bytes
    report.imageSize = snapshot.imageSize?.bytes
    report.secondsInState = (now - snapshot.since).seconds
    report.secondsSinceUse = (now - snapshot.lastUsed).seconds
    report.policy = snapshot.profile.policy.name
    report.reason = snapshot.cause.sentence
    report.hibernation = snapshot.hibernationVerdict
    report.launchSeconds = snapshot.launchCost?.seconds
    report.resumeSeconds = snapshot.resumeCost?.seconds
    report.lastShed = snapshot.lastShed.map { "\($0.kind.spoken), it \($0.sentence)" }
    report.lastExit = snapshot.lastExit?.sentence
    report.tasks = snapshot.tasks
    guard let runtime = workers[snapshot.worker] else { return report }
    report.command = runtime.configuration.command
    report.log = state.log(of: runtime.id.name)
    report.says = runtime.statusText
    report.resume = runtime.resumeGear
    guard let process = runtime.process else { return report }
    let pids = (try? process.tree(in: scan).pids) ?? []
    report.pid = process.identity.pid
    report.processes = pids.count
    report.reclaimable = (try? Footprint.measure(pids))?.reclaimable ?? 0
    return report
  }

  private func daemonReport() -> DaemonReport {
    DaemonReport(
      pid: getpid(), version: settings.version, policy: engine.policy.name,
      mode: engine.policy.mode.rawValue, pressure: engine.pressure.name,
      budget: engine.budget.bytes, available: engine.available.bytes,
      budgetIsHost: engine.policy.memory == .host, freezer: freezerName,
      stateDirectory: state.path)
  }

  func keep(_ report: JetsamReport) {
    let now = DaemonLog.timestamp()
    let record = JetsamRecord(
      id: jetsamReports.newID(at: now), time: now, policy: engine.policy.name,
      level: report.level.name, why: report.why, budget: report.budget.bytes,
      availableBefore: report.availableBefore.bytes, availableAfter: report.availableAfter.bytes,
      largest: report.largest?.name,
      workers: report.entries.map { entry in
        JetsamRecord.Entry(
          name: entry.worker.name, state: entry.state.rawValue, band: entry.band,
          footprint: entry.footprint.bytes, peakFootprint: entry.peakFootprint.bytes,
          secondsSinceUse: entry.sinceUse.seconds, victimBecause: entry.victimBecause,
          gaveBack: entry.gaveBack?.bytes)
      })
    do {
      try jetsamReports.save(record)
      log(.warning, "low memory report \(record.id): `dormouse jetsam` shows it")
    } catch { log(.error, "the low memory report \(record.id) can't be kept: \(error)") }
  }
}

extension Directive.ShedKind {
  /// To begin a sentence about what it did.
  fileprivate var spoken: String {
    switch self {
    case .didEnterBackground: "sent to the background"
    case .memoryWarning: "warned"
    }
  }
}

extension Duration {
  var seconds: Double { Double(wholeNanoseconds) / 1_000_000_000 }
}

import Control
import Glibc
import JSONLines
import Lifecycle
import Linux
import Policy
import Supervision

// What `ps`, `status` and `jetsam` show.

extension Daemon {
  /// The same with what the worker shows of itself, which is on disk.
  func reportWithSnapshot(
    _ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void
  ) {
    if request.verb == .status, let name = request.worker {
      // Of one worker, what is true now.
      guard let process = workers[WorkerID(name)]?.process, process.cgroup == nil else {
        return addSnapshot(to: report(request, nil), request, then: respond)
      }
      return scanProcesses { [unowned self] scan in
        addSnapshot(to: report(request, scan), request, then: respond)
      }
    }
    withRecentScan(of: workers.values) { [unowned self] scan in respond(report(request, scan)) }
  }

  private func addSnapshot(
    to response: ControlResponse, _ request: ControlRequest,
    then respond: @escaping (ControlResponse) -> Void
  ) {
    guard request.verb == .status, let report = response.workers?.first, request.worker != nil,
      workers[WorkerID(report.name)] != nil
    else { return respond(response) }
    let isWanted = request.withSnapshot == true
    waitingForDisk.append { snapshot in
      var response = response
      response.workers = [Self.add(snapshot, to: report, content: isWanted)]
      respond(response)
    }
    snapshots.load(report.name, mailbox) { daemon, snapshot in
      // In the order of the requests: one thread reads for all.
      if !daemon.waitingForDisk.isEmpty { daemon.waitingForDisk.removeFirst()(snapshot) }
    }
  }

  /// - Parameter scan: for workers without a cgroup.
  func report(_ request: ControlRequest, _ scan: ProcessScan?) -> ControlResponse {
    let now = EventLoop.now
    if request.verb == .status, let name = request.worker {
      if isWrapped(name), let entry = wrappers.entry(of: name) {
        return ControlResponse(
          id: request.id, result: .done, text: "\(name) is wrapped",
          workers: [entry.current(at: now)], daemon: daemonReport())
      }
      guard let snapshot = engine.snapshot(of: WorkerID(name), at: now) else {
        return ControlResponse(
          id: request.id, result: .unknownWorker, text: "there is no worker named \(name)")
      }
      return ControlResponse(
        id: request.id, result: .done, text: "\(name) is \(snapshot.state.spoken)",
        workers: [report(snapshot, scan, at: now, withGroup: true)], daemon: daemonReport())
    }
    let own = engine.snapshots(at: now).filter { !wrappers.leads($0.worker) }.map {
      report($0, scan, at: now, withGroup: request.verb == .status)
    }
    let reports = own + wrappers.reports(at: now)
    return ControlResponse(
      id: request.id, result: .done,
      text: reports.count == 1 ? "1 worker" : "\(reports.count) workers", workers: reports,
      daemon: daemonReport())
  }

  /// - Parameter withGroup: also what the kernel counts of its cgroup, which takes six files.
  private func report(
    _ snapshot: WorkerSnapshot, _ scan: ProcessScan?, at now: Instant, withGroup: Bool
  ) -> WorkerReport {
    var report = WorkerReport(name: snapshot.worker.name, state: snapshot.state.rawValue)
    report.band = snapshot.band
    report.importance = snapshot.profile.importance
    report.footprint = snapshot.footprint.bytes
    report.peakFootprint = snapshot.peakFootprint.bytes
    // What an earlier daemon has hibernated, the engine has no number of.
    report.imageSize =
      snapshot.imageSize?.bytes
      ?? (snapshot.state == .hibernated ? workers[snapshot.worker]?.image?.length : nil)
    report.secondsInState = (now - snapshot.since).seconds
    report.secondsSinceUse = (now - snapshot.lastUsed).seconds
    report.policy = snapshot.profile.policy.name
    report.reason = CodedText(snapshot.cause)
    report.hibernation = snapshot.hibernationVerdict.map { CodedText($0) }
    report.launchSeconds = snapshot.launchCost?.seconds
    report.resumeSeconds = snapshot.resumeCost?.seconds
    report.baseSize = workers[snapshot.worker].flatMap {
      let size = $0.image == nil ? imageDisk.base(of: $0.id.name) : 0
      return size > 0 ? size : nil
    }
    report.hibernateSeconds = workers[snapshot.worker]?.lastHibernation?.seconds
    report.hibernateWritten = workers[snapshot.worker]?.lastHibernation?.written
    report.hibernateUnchanged = workers[snapshot.worker]?.lastHibernation?.unchanged
    report.lastShed = snapshot.lastShed.map { ShedReport($0) }
    report.lastMiss = snapshot.lastMiss.map {
      CodedText("missed_deadline", "\($0.text), \((now - $0.at).spoken) ago")
    }
    report.earlyWake = snapshot.earlyWake.map { EarlyWakeReport($0, at: now) }
    report.shadow = ShadowReport(snapshot.shadow)
    report.purgeable = snapshot.purgeable > .zero ? snapshot.purgeable.bytes : nil
    report.lastExit = snapshot.lastExit.map { ExitStatusReport($0) }
    report.tasks = snapshot.tasks
    if let wrapped {
      report.wrapper = getpid()
      report.wakes = wrapped.wakes
    }
    guard let runtime = workers[snapshot.worker] else { return report }
    report.command = runtime.launched?.command ?? runtime.configuration.command
    let changed = runtime.keysChangedSinceLaunch
    report.changedSinceLaunch = changed.isEmpty ? nil : changed
    report.reloadSignal = runtime.configuration.reloadSignal.map(SignalName.text)
    describePlans(of: runtime, &report, at: now)
    if runtime.external == nil {
      report.log = wrapped == nil ? logPath(of: runtime) : wrapped?.settings.log
    } else {
      report.isAdopted = true
    }
    report.says = runtime.conversation?.statusText
    report.connections = runtime.conversation?.connectionCount
    report.talk = runtime.conversation?.withoutEffect.map { CodedText("without_effect", $0) }
    report.resume = runtime.sleep?.restoreMode
    guard let process = runtime.process else { return report }
    let pids = processes(of: process, scan)
    report.pid = process.identity.pid
    report.processes = pids.count
    if withGroup {
      report.swapped = pids.reduce(0) { sum, pid in
        // One that has just ended has none.
        sum + ((try? ProcessStatus.read(pid))?.swappedBytes ?? 0)
      }
    }
    report.cgroup = process.cgroup.map { CgroupReport(of: $0, withAccount: withGroup) }
    report.reclaimable = runtime.measuring.last?.reclaimable ?? 0
    report.measuredSecondsAgo = runtime.measuring.last.map { (now - $0.at).seconds }
    return report
  }

  /// Nothing here looks at all processes.
  private func processes(of process: WorkerProcess, _ scan: ProcessScan?) -> [Int32] {
    guard process.cgroup == nil else { return (try? process.tree().pids) ?? [] }
    return scan?.tree(root: process.identity, session: process.session).pids ?? []
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

  private func daemonReport() -> DaemonReport {
    var report = DaemonReport(
      pid: getpid(), version: settings.version, policy: engine.policy.name,
      mode: engine.policy.mode.rawValue, pressure: engine.pressure.name,
      budget: engine.budget.bytes, available: engine.available.bytes,
      budgetIsHost: engine.policy.memory == .host, freezer: freezer,
      stateDirectory: state.path)
    let now = EventLoop.now
    if let set = engine.setPressure, now < set.until {
      report.pressureSet = set.level.name
      report.pressureSetSeconds = (set.until - now) / .seconds(1)
    }
    let costs = ledger.total(at: Int64(time(nil)))
    report.writtenInDay = costs.bytes
    report.hibernatingSecondsInDay = Double(costs.milliseconds) / 1000
    report.imagesInDay = costs.images
    report.dailyWrites = engine.policy.hibernate.disk.dailyWrites.bytes
    report.shadow = ShadowReport(engine.shadowSummary)
    return report
  }

  /// When the first victim of a burst is chosen; the report is written when it is over.
  func lookAtMemory() {
    guard memoryAtBurst == nil, let memory = try? HostMemory.read() else { return }
    let workers = engine.workerIDs.reduce(ByteCount.zero) { sum, worker in
      engine.state(of: worker)?.isAlive == true ? sum + engine.footprint(of: worker) : sum
    }
    memoryAtBurst = JetsamRecord.Host(
      total: memory.total, free: memory.free, reclaimable: memory.reclaimable,
      wired: memory.wired, workers: workers.bytes, someStall: lastStall?.some,
      fullStall: lastStall?.full)
  }

  func keep(_ report: JetsamReport) {
    let now = DaemonLog.timestamp()
    let record = JetsamRecord(
      id: jetsamReports.newID(at: now), time: now, policy: engine.policy.name,
      level: report.level.name, why: CodedText("pressure", report.why), budget: report.budget.bytes,
      availableBefore: report.availableBefore.bytes, availableAfter: report.availableAfter.bytes,
      largest: report.largest?.name,
      workers: report.entries.map { entry in
        JetsamRecord.Entry(
          name: entry.worker.name, state: entry.state.rawValue, band: entry.band,
          footprint: entry.footprint.bytes, peakFootprint: entry.peakFootprint.bytes,
          secondsSinceUse: entry.sinceUse.seconds, secondsOfAge: entry.age.seconds,
          victimBecause: entry.victimBecause.map { CodedText("chosen_by_order", $0) },
          gaveBack: entry.gaveBack?.bytes)
      }, host: memoryAtBurst)
    memoryAtBurst = nil
    save(record)
  }

  func save(_ record: JetsamRecord) {
    jetsamReports.keep(record)
    disk.submit { [log, jetsamReports] in
      do {
        try jetsamReports.store.save(record)
        log(.warning, "low memory report \(record.id): `dormouse jetsam` shows it")
      } catch { log(.error, "the low memory report \(record.id) can't be kept: \(error)") }
    }
  }
}

extension ShedRecord {
  /// `warned, it gave back 3.1 MB (from 20 MB to 16.9 MB)`.
  var spoken: String { "\(kind.spoken), it \(sentence)" }
}

extension CgroupReport {
  fileprivate init(of group: WorkerCgroup, withAccount: Bool) {
    self.init(path: group.path)
    guard withAccount else { return }
    let account = group.account()
    cpuSeconds = account.cpuMicroseconds.map { Double($0) / 1_000_000 }
    memory = account.memory
    memoryPeak = account.memoryPeak
    tasks = account.tasks
    memoryStall = account.memoryStall?.some.average10
    cpuStall = account.cpuStall?.some.average10
    ioStall = account.inputOutputStall?.some.average10
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

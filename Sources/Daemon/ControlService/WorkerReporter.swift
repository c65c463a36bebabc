import Control
import Lifecycle
import Linux
import Policy
import Supervision

/// One worker in `ps` and `status`: what the engine knows about it, what the daemon knows, and what
/// the kernel counts now.
struct WorkerReporter {
  let snapshot: WorkerSnapshot
  /// nil if the daemon has removed the worker.
  let facts: WorkerFacts?
  /// A scan of processes, for a worker without a cgroup.
  let scan: ProcessScan?
  let now: Instant

  /// - Parameter withGroup: whether to include what the kernel counts for its cgroup, which takes
  ///   six files.
  func report(withGroup: Bool) -> WorkerReport {
    var report = WorkerReport(name: snapshot.worker.name, state: snapshot.state.rawValue)
    describeState(&report)
    describePast(&report)
    guard let facts else { return report }
    if snapshot.cause == .active, let sign = facts.worker.sample.sign {
      report.reason.text = sign.text(from: facts.worker.sample.source)
    }
    report.isAdopted = facts.worker.external == nil ? nil : true
    report.rule = facts.rule
    describeSleep(facts, &report)
    facts.describeRuns(in: &report, at: now)
    if let process = facts.worker.process {
      describe(process, facts: facts, into: &report, withGroup: withGroup)
    }
    return report
  }

  private func describeState(_ report: inout WorkerReport) {
    report.band = snapshot.band
    report.importance = snapshot.profile.importance
    report.footprint = snapshot.footprint.bytes
    report.peakFootprint = snapshot.peakFootprint.bytes
    report.secondsInState = (now - snapshot.stateSince).seconds
    report.secondsSinceUse = (now - snapshot.lastUsed).seconds
    report.policy = snapshot.profile.policy.name
    report.reason = CodedText(snapshot.cause)
    if snapshot.cause == .adopted, let rule = snapshot.profile.rule {
      report.reason.text += " (rule \(rule))"
    }
    report.hibernation = snapshot.hibernationVerdict.map { CodedText($0) }
    report.purgeable = snapshot.purgeable > .zero ? snapshot.purgeable.bytes : nil
    report.tasks = snapshot.tasks
    report.secondsAsleep = snapshot.asleepSince.map { (now - $0).seconds }
    report.lastWake = snapshot.lastWake.map { wake in
      LastWakeReport(
        code: wake.cause.code, text: wake.cause.sentence, secondsAgo: (now - wake.at).seconds)
    }
    report.notice = snapshot.notice.map {
      CodedText("will_terminate", $0.sentence(of: snapshot.worker, at: now))
    }
    report.noticeSeconds = snapshot.notice.map { max(0, ($0.until - now).seconds) }
    report.footprintLimits = FootprintLimitReport(of: snapshot, at: now)
    report.leak = snapshot.leak.map { LeakReport($0) }
    let left = snapshot.protectedUntil.map { max(.zero, $0 - now) }
    report.protection = snapshot.protection.map { CodedText($0, for: left) }
    report.protectedSeconds = left?.seconds
  }

  private func describePast(_ report: inout WorkerReport) {
    report.imageSize = snapshot.imageSize?.bytes
    report.launchSeconds = snapshot.launchCost?.seconds
    report.resumeSeconds = snapshot.resumeCost?.seconds
    report.lastShed = snapshot.lastShed.map { ShedReport($0) }
    report.lastMiss = snapshot.lastMiss.map {
      CodedText("missed_deadline", "\($0.text), \((now - $0.at).text) ago")
    }
    report.trim = snapshot.trim.map { TrimReport($0) }
    report.earlyWake = snapshot.earlyWake.map { EarlyWakeReport($0, at: now) }
    report.shadow = ShadowReport(snapshot.shadow)
    report.lastExit = snapshot.lastExit.map { ExitStatusReport($0) }
  }

  private func describeSleep(_ facts: WorkerFacts, _ report: inout WorkerReport) {
    // The engine has no size of an image that a trim or an earlier daemon has written.
    if report.imageSize == nil, snapshot.state == .hibernated || facts.bytesInTrimImage > 0 {
      report.imageSize = facts.imageLength
    }
    report.baseSize = facts.baseSize > 0 ? facts.baseSize : nil
    let last = facts.worker.lastHibernation
    report.hibernateSeconds = last?.seconds
    report.hibernateWritten = last?.written
    report.hibernateUnchanged = last?.unchanged
    switch facts.worker.wakeWatch?.stoppedWork {
    case .timer(let timer): report.stoppedTimerSeconds = timer.interval.seconds
    case .writing: report.stopsWriting = true
    case nil: break
    }
    if snapshot.state == .hibernated, let before = last?.footprintBefore {
      report.saved = max(0, (before - snapshot.footprint).bytes)
    }
  }

  private func describe(
    _ process: WorkerProcess, facts: WorkerFacts, into report: inout WorkerReport, withGroup: Bool
  ) {
    let pids = pids(of: process)
    report.pid = process.identity.pid
    report.processes = pids.count
    if withGroup {
      report.swapped = pids.reduce(facts.bytesInTrimImage) { sum, pid in
        // A process that has just ended has no swap.
        sum + ((try? ProcessStatus.read(pid))?.swappedBytes ?? 0)
      }
    }
    report.cgroup = process.cgroup.map { CgroupReport(of: $0, withAccount: withGroup) }
    let measured = facts.worker.measuring.last
    report.reclaimable = measured?.reclaimable ?? 0
    report.sharedByFork = measured.flatMap { $0.sharedByFork > 0 ? $0.sharedByFork : nil }
    report.measuredSecondsAgo = measured.map { (now - $0.at).seconds }
  }

  /// The worker's processes. This doesn't scan all processes.
  private func pids(of process: WorkerProcess) -> [Int32] {
    // A cgroup that can't be read has just been removed, so nothing is in it.
    guard process.cgroup == nil else { return (try? process.tree().pids) ?? [] }
    return scan?.tree(root: process.identity, session: process.session).pids ?? []
  }
}

extension FootprintLimitReport {
  fileprivate init?(of worker: WorkerSnapshot, at now: Instant) {
    guard let limits = worker.profile.footprintLimits else { return nil }
    self.init(
      sustainedSeconds: limits.sustainedFor.seconds, restarts: worker.footprintRestarts?.count ?? 0)
    warn = limits.warn?.bytes
    hibernate = limits.hibernate?.bytes
    restart = limits.restart?.bytes
    guard let past = worker.footprintRestarts else { return }
    lastRestartSecondsAgo = (now - past.last).seconds
    lastRestart = CodedText("restarted_for_footprint", past.excess.sentence)
  }
}

extension LeakReport {
  init(_ leak: LeakSuspicion) {
    self.init(
      text: leak.sentence, footprintBefore: leak.before.bytes, footprint: leak.footprint.bytes,
      suspensions: leak.suspensions, seconds: leak.span.seconds,
      bytesPerSuspension: leak.perSuspension.bytes)
    bytesPerDay = leak.perDay?.bytes
    leftByWarning = leak.leftByWarning?.bytes
  }
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

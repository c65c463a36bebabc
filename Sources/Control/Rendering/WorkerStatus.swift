/// The output of `dormouse status NAME`: everything about one worker that explains its state.
public func renderWorkerStatus(
  _ worker: WorkerReport, width: Int? = nil, color: Bool = false,
  clock: ReaderClock = ReaderClock()
) -> String {
  let isThere = worker.state != "terminated"
  let state = ShownState(of: worker)
  let shown = state.color.paint(state.text, if: color)
  // A worker that was never started has no history.
  let isNew = !isThere && worker.reason.code == "never_started"
  var block = StatusBlock(
    title: "\(escaped(worker.name)): "
      + (isNew
        ? escaped(worker.reason.text) : "\(shown) for \(durationText(worker.secondsInState))"))
  block.add("reason", isNew ? nil : escaped(worker.reason.text))
  addSleepLines(of: worker, clock, to: &block)
  block.add("adopted by", worker.rule.map { "the rule \(escaped($0))" })
  block.add("says", worker.says.map(escaped))
  block.add("snapshot", worker.snapshot.map(snapshotText))
  block.add("connections", connectionsText(worker))
  block.add("resume", worker.resume.map { escaped($0.text) })
  block.add(
    "band", "\(worker.band)\(worker.importance > 0 ? ", importance \(worker.importance)" : "")")
  block.add("groups", worker.groups.map { escaped($0.joined(separator: ", ")) })
  block.add(
    "last used",
    worker.activity.map(lastUseText) ?? "\(durationText(worker.secondsSinceUse)) ago")
  // A worker that has ended has no memory.
  if isThere { addSizeLines(of: worker, to: &block) }
  for line in savingsLines(worker.savings) { block.add("savings", line) }
  block.add("cgroup", worker.cgroup.flatMap(cgroupText))
  block.add("stalled", worker.cgroup.flatMap(stallText))
  block.add("image", worker.imageSize.map { "\(sizeText($0)) on disk" })
  block.add("base", worker.baseSize.map { "\(sizeText($0)) on disk, for its next image" })
  block.add("hibernated", lastHibernationText(worker))
  block.add("hibernation", worker.hibernation.map { escaped($0.text) })
  block.add("cost", costText(worker))
  addMemoryLines(of: worker, to: &block)
  block.add("shadow mode", worker.shadow.map { escaped($0.text) })
  block.add("tasks", worker.tasks.isEmpty ? nil : worker.tasks.map(escaped).joined(separator: ", "))
  block.add("processes", processesText(worker))
  block.add("wrapped by", wrapperText(worker))
  block.add("last exit", worker.lastExit.map { escaped($0.text) })
  // While the worker runs, the last output of earlier runs isn't shown.
  block.add("last output", isThere ? nil : worker.exits?.last?.lastWords.map(escaped))
  block.add("restarts", restartsText(worker))
  block.add("liveness", worker.livenessFailure.map { "failing: \(escaped($0.text))" })
  block.add("checks", worker.answeredAsleep.map { "\($0) answered while it slept" })
  block.add(
    "changed",
    worker.changedSinceLaunch.map {
      "\(escaped($0.joined(separator: ", "))): "
        + "`dormouse restart \(escaped(worker.name))` applies it"
    })
  block.add("policy", escaped(worker.policy))
  block.add("log", worker.log.map(escaped))
  // The command is one line, so that you can copy it.
  block.add("command", worker.command.isEmpty ? nil : shellText(worker.command), wraps: false)
  return block.text(width: width)
}

private func addSizeLines(of worker: WorkerReport, to block: inout StatusBlock) {
  block.add(
    "footprint",
    "\(sizeText(worker.footprint)), peak \(sizeText(worker.peakFootprint))"
      + (worker.saved.map { "; \(sizeText($0)) saved" } ?? ""))
  block.add(
    "swapped", worker.swapped.flatMap { $0 > 0 ? "\(sizeText($0)), part of the footprint" : nil })
  block.add("trim", worker.trimText)
  block.add(
    "shared",
    worker.sharedByFork.flatMap {
      $0 >= 1 << 20
        ? "\(sizeText($0)) by fork, part of the footprint; hibernation doesn't move it" : nil
    })
  block.add("reclaimable", sizeText(worker.reclaimable) + " of file pages, not in the footprint")
}

private func addSleepLines(
  of worker: WorkerReport, _ clock: ReaderClock, to block: inout StatusBlock
) {
  block.add(
    "asleep since",
    worker.secondsAsleep.map { "\(clock.text(secondsAgo: $0)), for \(durationText($0))" })
  block.add("last wake", worker.lastWake.map { lastWakeText($0, clock) })
}

/// Adds what it freed or kept when memory was short, and the possible consequences.
private func addMemoryLines(of worker: WorkerReport, to block: inout StatusBlock) {
  block.add("last shed", worker.lastShed.map { escaped($0.text) })
  block.add("missed", worker.lastMiss.map { escaped($0.text) })
  block.add("early wake", worker.earlyWake.map { escaped($0.text) })
  block.add("notice", worker.notice.map { escaped($0.text) })
  block.add("limits", worker.footprintLimits.map(limitsText))
  block.add("leak", worker.leak.map { "suspected: \(escaped($0.text))" })
  block.add("purgeable", worker.purgeable.map { "\(sizeText($0)) on offer" })
  block.add(
    "protection", worker.protection.map { escaped("not terminated for lack of memory: \($0.text)") }
  )
}

/// A text such as `warn over 300 MB, restart over 1 GB, for 30 s; restarted 2 times, the last …`.
private func limitsText(_ limits: FootprintLimitReport) -> String {
  let steps = [
    ("warn", limits.warn), ("hibernate", limits.hibernate), ("restart", limits.restart),
  ]
  let parts = steps.compactMap { name, size in size.map { "\(name) over \(sizeText($0))" } }
  var text = "\(parts.joined(separator: ", ")), for \(durationText(limits.sustainedSeconds))"
  if let reason = limits.lastRestart, let ago = limits.lastRestartSecondsAgo {
    text +=
      "; restarted \(counted(limits.restarts, "time")), the last \(durationText(ago)) ago: "
      + escaped(reason.text)
  }
  return text
}

/// The output of `dormouse status`: the daemon, and the machine as the daemon measures it.
public func renderDaemonStatus(
  _ daemon: DaemonReport, workers: [WorkerReport]? = nil, width: Int? = nil, color: Bool = false
) -> String {
  var block = StatusBlock(title: "dormouse \(escaped(daemon.version)), pid \(daemon.pid)")
  block.add("saved now", workers.flatMap(savedNowText))
  block.add("policy", "\(escaped(daemon.policy)), mode \(escaped(daemon.mode))")
  let pressure = Color.ofPressure(daemon.pressure).paint(escaped(daemon.pressure), if: color)
  block.add(
    "pressure", [pressure, setPressureText(daemon)].compactMap { $0 }.joined(separator: ", "))
  block.add("memory", memoryText(daemon))
  block.add("budget", budgetText(daemon))
  block.add("suspends by", escaped(daemon.freezer.text))
  block.add("state in", escaped(daemon.stateDirectory))
  block.add("shadow mode", daemon.shadow.map { escaped($0.text) })
  block.add("disk writes", diskWritesText(daemon))
  block.add("workers", workers.map { totalsLine($0, showsSaved: false) })
  for line in savingsLines(daemon.savings) { block.add("savings", line) }
  return block.text(width: width)
}

private func budgetText(_ daemon: DaemonReport) -> String {
  guard daemon.budgetIsHost else { return "fixed (memory.budget)" }
  return daemon.limitedBy.map { "limit of the cgroup \(escaped($0))" } ?? "this machine"
}

/// A text such as `14:02, 40 s ago: woken by its own timer`.
private func lastWakeText(_ wake: LastWakeReport, _ clock: ReaderClock) -> String {
  let time = "\(clock.text(secondsAgo: wake.secondsAgo)), \(durationText(wake.secondsAgo)) ago"
  return "\(time): \(escaped(wake.text))"
}

/// The beginning of a text in one line. `status --snapshot` shows the whole text, and images.
private func snapshotText(_ snapshot: SnapshotReport) -> String {
  guard let text = snapshot.text else {
    return "\(escaped(snapshot.mime)), \(sizeText(snapshot.size))"
  }
  let lines = text.split(whereSeparator: \.isNewline)
  let first = String((lines.first ?? "").prefix(200))
  let isAll = lines.count < 2 && first.count == lines.first?.count ?? 0
  return escaped(first) + (isAll ? "" : " …")
}

private func connectionsText(_ worker: WorkerReport) -> String? {
  let count = worker.connections.map { "\($0) at DORMOUSE_WORKER_SOCKET" }
  let parts = [count, worker.talk.map { escaped($0.text) }].compactMap { $0 }
  return parts.isEmpty ? nil : parts.joined(separator: "; ")
}

private func cgroupText(_ group: CgroupReport) -> String? {
  let peak = group.memoryPeak.map { " (peak \(sizeText($0)))" } ?? ""
  let parts = [
    group.cpuSeconds.map { "\(durationText($0)) of processor time" },
    group.memory.map { "\(sizeText($0)) charged\(peak)" },
    group.tasks.map { "\($0) tasks" },
  ]
  let text = parts.compactMap { $0 }.joined(separator: ", ")
  return text.isEmpty ? nil : text
}

/// The stalls, or nil if no task waited.
private func stallText(_ group: CgroupReport) -> String? {
  let parts = [
    ("memory", group.memoryStall), ("a processor", group.cpuStall), ("a disk", group.ioStall),
  ].compactMap { what, share in
    share.flatMap { $0 > 0 ? "\(percentText($0)) for \(what)" : nil }
  }
  return parts.isEmpty ? nil : parts.joined(separator: ", ") + ", in the last 10 s"
}

private func lastHibernationText(_ worker: WorkerReport) -> String? {
  guard let seconds = worker.hibernateSeconds, let written = worker.hibernateWritten else {
    return nil
  }
  let unchanged = worker.hibernateUnchanged ?? 0
  return "last in \(durationText(seconds)), \(sizeText(written)) written"
    + (unchanged > 0 ? "; \(sizeText(unchanged)) unchanged since the last image" : "")
}

private func diskWritesText(_ daemon: DaemonReport) -> String? {
  guard let written = daemon.writtenInDay, let limit = daemon.dailyWrites else { return nil }
  let images = daemon.imagesInDay ?? 0
  return "\(sizeText(written)) of \(sizeText(limit)) in 24 hours"
    + (images > 0
      ? ", \(images) \(images == 1 ? "image" : "images") in "
        + durationText(daemon.hibernatingSecondsInDay ?? 0) : "")
}

private func restartsText(_ worker: WorkerReport) -> String? {
  let exits = worker.exits ?? []
  guard let restarts = worker.restarts, restarts > 0 else { return nil }
  let last = exits.suffix(3).map { escaped($0.why.text) }.joined(separator: "; ")
  return "\(restarts)\(last.isEmpty ? "" : "; its last runs: \(last)")"
}

private func processesText(_ worker: WorkerReport) -> String? {
  guard let pid = worker.pid else { return nil }
  return worker.processes > 1 ? "\(worker.processes), the first is pid \(pid)" : "pid \(pid)"
}

private func wrapperText(_ worker: WorkerReport) -> String? {
  worker.wrapper.map { pid in
    "pid \(pid)" + (worker.wakes.map { ", woken \($0) times" } ?? "")
      + (worker.host.map { ", for \(escaped($0))" } ?? "")
      + (worker.directory.map { ", in \(escaped($0))" } ?? "")
  }
}

/// The comparison that decides whether hibernation is worthwhile.
private func costText(_ worker: WorkerReport) -> String? {
  switch (worker.launchSeconds, worker.resumeSeconds) {
  case (nil, nil): nil
  case (let launch?, nil): "launch \(durationText(launch)), resume not yet known"
  case (nil, let resume?): "resume \(durationText(resume)), launch not yet known"
  case (let launch?, let resume?):
    "launch \(durationText(launch)), resume \(durationText(resume))"
      + (resume > 0 && launch > 0 ? ": \(comparison(launch: launch, resume: resume))" : "")
  }
}

private func comparison(launch: Double, resume: Double) -> String {
  launch >= resume
    ? "resuming is \(decimal(launch / resume)) times as fast"
    : "relaunching is \(decimal(resume / launch)) times as fast"
}

/// A title, and indented, aligned lines with a label and a value.
struct StatusBlock {
  var title: String
  private var entries: [(label: String, value: String, wraps: Bool)] = []

  init(title: String) { self.title = title }

  mutating func add(_ label: String, _ value: String?, wraps: Bool = true) {
    guard let value, !value.isEmpty else { return }
    entries.append((label, value, wraps))
  }

  /// - Parameter width: the terminal's width in columns; nil for no limit. Longer values are
  ///   wrapped and aligned.
  func text(width: Int? = nil) -> String {
    let labels = entries.map(\.label.count).max() ?? 0
    let lines = entries.flatMap { entry in
      hanging(
        "  \(padded(entry.label, to: labels))  ", entry.value, to: entry.wraps ? width : nil)
    }
    return ([title] + lines).joined(separator: "\n") + "\n"
  }
}

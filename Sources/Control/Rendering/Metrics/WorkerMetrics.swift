extension MetricsPage {
  /// Each worker's state, memory, costs and counters.
  mutating func add(workers: [WorkerReport]) {
    let entries = LabelledWorker.all(workers)
    add(statesOf: entries)
    add(ranksOf: entries)
    add(memoryOf: entries)
    add(costsOf: entries)
    add(cgroupsOf: entries)
    add(countersOf: entries)
    add(timesOf: entries)
  }

  private mutating func each(
    _ metric: Metric, of entries: [LabelledWorker],
    _ value: (WorkerReport) -> (any MetricValue)?
  ) {
    add(metric, entries.map { ($0.labels, value($0.worker)) })
  }

  private mutating func add(statesOf entries: [LabelledWorker]) {
    add(
      Metric(.info, "dormouse_worker_info", help: "A worker's policy, and where it comes from."),
      entries.map {
        ($0.labels.with("policy", $0.worker.policy).with("origin", $0.worker.origin), 1)
      })
    add(
      Metric(
        .gauge, "dormouse_worker_state",
        help: "The worker's state: 1 for the state that it is in, 0 for the others."),
      entries.flatMap { entry in
        workerStates.map { (entry.labels.with("state", $0), entry.worker.state == $0) }
      })
    add(
      Metric(
        .gauge, "dormouse_worker_state_reason",
        help: "Always 1; the label has the code of the reason for the worker's state."),
      entries.map { ($0.labels.with("reason", $0.worker.reason.code), 1) })
    each(
      Metric(
        .gauge, "dormouse_worker_failed",
        help: "1 if the worker ended by a failure and does not run again, or not yet."),
      of: entries
    ) { $0.hasFailed }
    each(
      Metric(
        .gauge, "dormouse_worker_state_age_seconds", unit: .seconds,
        help: "Since the worker reached its state."), of: entries
    ) { $0.secondsInState }
    each(
      Metric(
        .gauge, "dormouse_worker_idle_seconds", unit: .seconds,
        help: "Since the worker was last used."), of: entries
    ) { $0.secondsSinceUse }
  }

  private mutating func add(ranksOf entries: [LabelledWorker]) {
    each(
      Metric(.gauge, "dormouse_worker_processes", help: "The worker's processes."), of: entries
    ) { $0.processes }
    each(
      Metric(
        .gauge, "dormouse_worker_band",
        help: "Orders workers for termination: the lowest is terminated first."), of: entries
    ) { $0.band }
    each(
      Metric(
        .gauge, "dormouse_worker_consecutive_restarts",
        help: "Automatic restarts since the worker was last started on request."), of: entries
    ) { $0.restarts ?? 0 }
    each(
      Metric(
        .gauge, "dormouse_worker_restart_delay_seconds", unit: .seconds,
        help: "While the worker backs off: until it is started again."), of: entries
    ) { $0.restartsInSeconds }
  }

  private mutating func add(memoryOf entries: [LabelledWorker]) {
    func gauge(_ name: String, _ help: String) -> Metric {
      Metric(.gauge, "dormouse_worker_\(name)_bytes", unit: .bytes, help: help)
    }
    each(
      gauge("footprint", "The memory that would be free without the worker."), of: entries
    ) { $0.footprint }
    each(
      gauge("footprint_peak", "The largest footprint of this run."), of: entries
    ) { $0.peakFootprint }
    each(
      gauge("reclaimable", "Clean file pages that the kernel can take back by itself."),
      of: entries
    ) { $0.reclaimable }
    each(
      gauge("swapped", "The part of the footprint that is in swap."), of: entries
    ) { $0.swapped }
    add(
      gauge(
        "footprint_limit",
        "The footprint from which on the worker is warned, hibernated or restarted."),
      entries.flatMap { entry -> [(Labels, (any MetricValue)?)] in
        let limits = entry.worker.footprintLimits
        return [
          ("warn", limits?.warn), ("hibernate", limits?.hibernate), ("restart", limits?.restart),
        ].map { (entry.labels.with("step", $0), $1) }
      })
    each(
      Metric(
        .counter, "dormouse_worker_footprint_restarts_total",
        help: "Restarts because the footprint was over `limits.footprint.restart`."), of: entries
    ) { $0.footprintLimits?.restarts }
    each(
      Metric(
        .gauge, "dormouse_worker_leak_suspected",
        help: "1 if the footprint was larger at each suspension of this run and did not come back."),
      of: entries
    ) { $0.leak != nil }
    each(
      gauge("purgeable", "Memory that the worker offers to be taken."), of: entries
    ) { $0.purgeable }
    each(
      gauge("image", "What the hibernated worker holds on disk."), of: entries
    ) { $0.imageSize }
    each(
      gauge("base", "What stays on disk of the last image, for the next one to build on."),
      of: entries
    ) { $0.baseSize }
    each(
      gauge("saved", "How much less memory the hibernated worker takes than right before."),
      of: entries
    ) { $0.saved }
  }

  private mutating func add(costsOf entries: [LabelledWorker]) {
    func gauge(_ name: String, _ help: String) -> Metric {
      Metric(.gauge, "dormouse_worker_last_\(name)_seconds", unit: .seconds, help: help)
    }
    each(
      gauge("launch", "How long the launch took until the worker was ready, as learned."),
      of: entries
    ) { $0.launchSeconds }
    each(
      gauge("resume", "How long the resume from hibernation takes, as learned."), of: entries
    ) { $0.resumeSeconds }
    each(
      gauge("hibernate", "How long the last hibernation took."), of: entries
    ) { $0.hibernateSeconds }
    each(
      Metric(
        .gauge, "dormouse_worker_last_hibernate_written_bytes", unit: .bytes,
        help: "What the last hibernation wrote to disk."), of: entries
    ) { $0.hibernateWritten }
  }

  private mutating func add(cgroupsOf entries: [LabelledWorker]) {
    each(
      Metric(
        .counter, "dormouse_worker_cpu_seconds_total", unit: .seconds,
        help: "Processor time of the worker's cgroup."), of: entries
    ) { $0.cgroup?.cpuSeconds }
    add(
      Metric(
        .gauge, "dormouse_worker_stall_ratio", unit: .ratio,
        help: "Share of the last 10 s in which some of the worker's tasks waited (PSI)."),
      entries.flatMap { entry in
        let group = entry.worker.cgroup
        return [
          ("memory", group?.memoryStall), ("cpu", group?.cpuStall), ("io", group?.ioStall),
        ].map { (entry.labels.with("resource", $0.0), $0.1.map { $0 / 100 }) }
      })
  }
}

/// A worker with the labels that all of its samples have.
struct LabelledWorker {
  let worker: WorkerReport
  let labels: Labels

  /// A wrapper's worker may have the name of another: then the label `wrapper` distinguishes them, because no two
  /// samples may have the same labels.
  static func all(_ workers: [WorkerReport]) -> [LabelledWorker] {
    var taken: Set<String> = []
    return workers.compactMap { worker in
      var labels = Labels([("worker", worker.name)])
      if taken.contains(labels.text), let pid = worker.wrapper {
        labels = labels.with("wrapper", "\(pid)")
      }
      return taken.insert(labels.text).inserted
        ? LabelledWorker(worker: worker, labels: labels) : nil
    }
  }
}

extension WorkerReport {
  fileprivate var origin: String {
    if wrapper != nil { return "wrapped" }
    if isAdopted == true { return rule == nil ? "adopted" : "rule" }
    return "started"
  }

  /// It isn't running, and neither a request nor an orderly end is the reason.
  fileprivate var hasFailed: Bool {
    guard state == "terminated" else { return false }
    switch reason.code {
    case "backing_off", "gave_up", "not_started", "attempt_failed", "watchdog", "signaled",
      "out_of_memory":
      return true
    case "exited": return lastExit?.status.map { $0 != 0 } ?? false
    default: return false
    }
  }
}

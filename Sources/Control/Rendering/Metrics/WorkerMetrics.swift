extension MetricsPage {
  /// Adds each worker's state, memory, costs and counters.
  mutating func addWorkers() {
    addStates()
    addRanks()
    addMemory()
    addCosts()
    addCgroups()
    addCounters()
    addTimes()
  }

  private mutating func addStates() {
    add(
      "worker_info", "A worker's policy, and where it comes from.",
      of: workers.map {
        ($0.labels.with("policy", $0.worker.policy).with("origin", $0.worker.origin), 1)
      })
    each(
      "state", "The worker's state: 1 for the state that it is in, 0 for the others.", by: "state"
    ) { worker in workerStates.map { ($0, worker.state == $0) } }
    each(
      "state_reason", "Always 1; the label has the code of the reason for the worker's state.",
      by: "reason"
    ) { [($0.reason.code, 1)] }
    each("failed", "1 if the worker ended by a failure and does not run again, or not yet.") {
      $0.hasFailed
    }
    each("state_age_seconds", "Time since the worker reached its state.") { $0.secondsInState }
    each("idle_seconds", "Time since the worker was last used.") { $0.secondsSinceUse }
  }

  private mutating func addRanks() {
    each("processes", "The worker's processes.") { $0.processes }
    each("band", "Orders workers for termination: the lowest is terminated first.") { $0.band }
    each(
      "consecutive_restarts", "Automatic restarts since the worker was last started on request."
    ) { $0.restarts ?? 0 }
    each(
      "restart_delay_seconds", "Time until the worker is started again while it backs off."
    ) { $0.restartsInSeconds }
  }

  private mutating func addMemory() {
    each("footprint_bytes", "The memory that would be free without the worker.") { $0.footprint }
    each("footprint_peak_bytes", "The largest footprint of this run.") { $0.peakFootprint }
    each(
      "reclaimable_bytes", "Clean file pages that the kernel can take back by itself."
    ) { $0.reclaimable }
    each("swapped_bytes", "The part of the footprint that is in swap, or in the image of a trim.") {
      $0.swapped
    }
    each("trim_returned_bytes", "What the last trim moved out of RAM and the worker used again.") {
      $0.trim?.cameBack
    }
    each(
      "footprint_limit_bytes",
      "The footprint from which on the worker is warned, hibernated or restarted.", by: "step"
    ) { worker in
      let limits = worker.footprintLimits
      return [
        ("warn", limits?.warn), ("hibernate", limits?.hibernate), ("restart", limits?.restart),
      ]
    }
    each(
      "footprint_restarts_total",
      "Restarts because the footprint was over `limits.footprint.restart`."
    ) { $0.footprintLimits?.restarts }
    each(
      "leak_suspected",
      "1 if the footprint was larger at each suspension of this run and did not come back."
    ) { $0.leak != nil }
    each("purgeable_bytes", "Memory that the worker offers to be taken.") { $0.purgeable }
    each("image_bytes", "What the hibernated or trimmed worker holds on disk.") { $0.imageSize }
    each(
      "base_bytes", "Bytes of the last image that stay on disk for the next one to build on."
    ) { $0.baseSize }
    each(
      "saved_bytes", "How much less memory the hibernated worker takes than right before."
    ) { $0.saved }
  }

  private mutating func addCosts() {
    each(
      "last_launch_seconds", "How long the launch took until the worker was ready, as learned."
    ) { $0.launchSeconds }
    each(
      "last_resume_seconds", "How long the resume from hibernation takes, as learned."
    ) { $0.resumeSeconds }
    each("last_hibernate_seconds", "How long the last hibernation took.") { $0.hibernateSeconds }
    each("last_hibernate_written_bytes", "Bytes that the last hibernation wrote to disk.") {
      $0.hibernateWritten
    }
  }

  private mutating func addCgroups() {
    each("cpu_seconds_total", "Processor time of the worker's cgroup.") { $0.cgroup?.cpuSeconds }
    each(
      "stall_ratio", "Share of the last 10 s in which some of the worker's tasks waited (PSI).",
      by: "resource"
    ) { worker in
      let group = worker.cgroup
      return [
        ("memory", group?.memoryStall), ("cpu", group?.cpuStall), ("io", group?.ioStall),
      ].map { ($0, $1.map { $0 / 100 }) }
    }
  }
}

/// A worker with the labels that all of its samples have.
struct LabelledWorker {
  let worker: WorkerReport
  let labels: Labels

  /// Labels the workers. If a wrapper's worker has the name of another worker, the label `wrapper`
  /// distinguishes them, because no two samples may have the same labels.
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
}

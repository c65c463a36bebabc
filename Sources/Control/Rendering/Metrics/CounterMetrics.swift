extension MetricsPage {
  /// What happened to the workers since the daemon started.
  mutating func add(countersOf entries: [LabelledWorker]) {
    count(
      "launches", help: "Times that the worker's program was launched.", of: entries, \.launches)
    count("failed_launches", help: "Launches that failed.", of: entries, \.failedLaunches)
    count("suspensions", help: "Times that the worker was suspended.", of: entries, \.suspensions)
    count(
      "hibernations", help: "Times that the worker was hibernated.", of: entries, \.hibernations)
    add(
      Metric(
        .counter, "dormouse_worker_wakes_total",
        help: "Times that the worker was woken, by the state that it slept in."),
      entries.flatMap { entry in
        let counters = entry.worker.counters
        return [("suspended", counters?.wakes), ("hibernated", counters?.resumes)].map {
          (entry.labels.with("from", $0.0), $0.1)
        }
      })
    count("memory_warnings", help: "Memory warnings that the worker got.", of: entries, \.warnings)
    add(
      Metric(
        .counter, "dormouse_worker_ends_total",
        help: "How the worker's runs ended; memory: it was terminated for lack of memory."),
      entries.flatMap { entry in
        let ends = entry.worker.counters?.ends
        return [
          ("memory", ends?.memory), ("watchdog", ends?.watchdog), ("requested", ends?.requested),
          ("completed", ends?.completed), ("crashed", ends?.crashed),
        ].map { (entry.labels.with("reason", $0.0), $0.1) }
      })
    add(
      Metric(
        .counter, "dormouse_worker_freed_bytes_total", unit: .bytes,
        help: "What hibernation, termination and requests for memory have freed."),
      entries.map { ($0.labels, $0.worker.counters?.freed) })
    add(
      Metric(
        .counter, "dormouse_worker_image_written_bytes_total", unit: .bytes,
        help: "What was written to the worker's images."),
      entries.map { ($0.labels, $0.worker.counters?.written) })
  }

  private mutating func count(
    _ name: String, help: String, of entries: [LabelledWorker],
    _ value: KeyPath<WorkerCounters, Int>
  ) {
    add(
      Metric(.counter, "dormouse_worker_\(name)_total", help: help),
      entries.map { ($0.labels, $0.worker.counters?[keyPath: value]) })
  }

  /// Times that add up.
  mutating func add(timesOf entries: [LabelledWorker]) {
    add(
      summary: Metric(
        .summary, "dormouse_worker_resume_duration_seconds", unit: .seconds,
        help: "Resumes from hibernation: from the order until the worker ran."),
      entries.compactMap { entry in
        entry.worker.counters.map { (entry.labels, $0.resumes, $0.resumeSeconds) }
      })
    add(
      Metric(
        .counter, "dormouse_worker_state_seconds_total", unit: .seconds,
        help: "The time that the worker has spent in each state."),
      entries.flatMap { entry in
        (entry.worker.counters?.states ?? []).map {
          (entry.labels.with("state", $0.state), $0.seconds)
        }
      })
    add(
      Metric(
        .counter, "dormouse_worker_footprint_byte_seconds_total",
        help: "The worker's footprint over time, in bytes times seconds."),
      entries.map { ($0.labels, $0.worker.counters?.footprintByteSeconds) })
  }
}

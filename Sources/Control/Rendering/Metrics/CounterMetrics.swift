extension MetricsPage {
  /// Adds the workers' counters since the daemon started.
  mutating func addCounters() {
    count("launches", "Times that the worker's program was launched.", of: \.launches)
    count("failed_launches", "Launches that failed.", of: \.failedLaunches)
    count("suspensions", "Times that the worker was suspended.", of: \.suspensions)
    count("hibernations", "Times that the worker was hibernated.", of: \.hibernations)
    each(
      "wakes_total", "Times that the worker was woken, by the state that it slept in.", by: "from"
    ) { [("suspended", $0.counters?.wakes), ("hibernated", $0.counters?.resumes)] }
    each("trims_total", "Trims that moved memory of the running worker out of RAM.") {
      $0.counters?.trims
    }
    each("trimmed_bytes_total", "Bytes that trims moved out of RAM.") { $0.counters?.trimmed }
    count("memory_warnings", "Memory warnings that the worker got.", of: \.warnings)
    each(
      "ends_total", "How the worker's runs ended; memory: it was terminated for lack of memory.",
      by: "reason"
    ) { worker in
      let ends = worker.counters?.ends
      return [
        ("memory", ends?.memory), ("watchdog", ends?.watchdog), ("requested", ends?.requested),
        ("completed", ends?.completed), ("crashed", ends?.crashed),
      ]
    }
    each(
      "freed_bytes_total", "Memory freed by hibernation, termination and requests for memory."
    ) { $0.counters?.freed }
    each("image_written_bytes_total", "Bytes written to the worker's images.") {
      $0.counters?.written
    }
  }

  private mutating func count(
    _ name: String, _ help: String, of value: KeyPath<WorkerCounters, Int>
  ) {
    each("\(name)_total", help) { $0.counters?[keyPath: value] }
  }

  /// Adds durations that are summed up.
  mutating func addTimes() {
    summary(
      "resume_duration_seconds", "Resumes from hibernation: from the order until the worker ran."
    ) { $0.counters.map { ($0.resumes, $0.resumeSeconds) } }
    each("state_seconds_total", "The time that the worker has spent in each state.", by: "state") {
      ($0.counters?.states ?? []).map { ($0.state, $0.seconds) }
    }
    each(
      "footprint_byte_seconds_total",
      "The worker's footprint in RAM over time, in bytes times seconds."
    ) { $0.counters?.footprintByteSeconds }
  }
}

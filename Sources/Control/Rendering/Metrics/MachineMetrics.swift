extension MetricsPage {
  /// Adds the machine's memory, and the disk of the images.
  mutating func addMachine(_ daemon: DaemonReport) {
    add(
      "memory_budget_bytes",
      "The memory against which pressure is measured: the machine's, or the policy's.",
      of: daemon.budget)
    add("memory_available_bytes", "The part of the budget that is available.", of: daemon.available)
    add(
      "pressure_level",
      "The level of memory pressure: 1 for the level that holds, 0 for the others.", by: "level",
      of: ["normal", "warning", "urgent", "critical"].map { ($0, daemon.pressure == $0) })
    let measured = daemon.measurements
    add(
      "memory_stall_ratio",
      "Share of the time in which some tasks, or all of them, waited for memory (PSI).",
      by: "share",
      of: [("some", measured?.someStall), ("full", measured?.fullStall)].map {
        ($0, $1.map { $0 / 100 })
      })
    add("swap_free_bytes", "Swap that is free.", of: measured?.swapFree)
    if let disk = measured?.imageDisk {
      add("image_disk_used_bytes", "All images together.", of: disk.images)
      add(
        "image_disk_budget_bytes",
        "The most that all images together may be (hibernate.disk.budget).", of: disk.budget)
      add(
        "image_filesystem_free_bytes", "Free space of the file system that has the images.",
        of: disk.free)
      add("image_filesystem_size_bytes", "The size of that file system.", of: disk.total)
      add(
        "image_filesystem_reserve_bytes",
        "Free space that must stay in that file system (hibernate.disk.min_free).", of: disk.least)
    }
    // These values fall when an hour is more than a day ago, so they are no counters.
    add(
      "image_day_written_bytes", "Bytes written to images in the last 24 hours.",
      of: daemon.writtenInDay)
    add(
      "image_day_limit_bytes",
      "What may be written to images in 24 hours (hibernate.disk.daily_writes).",
      of: daemon.dailyWrites)
    add(
      "image_day_hibernations", "Images that were written in the last 24 hours.",
      of: daemon.imagesInDay)
  }

  /// Adds the daemon itself, and its counters for all workers together.
  mutating func addDaemon(_ daemon: DaemonReport) {
    let labels = [
      ("version", daemon.version), ("policy", daemon.policy), ("mode", daemon.mode),
      ("freezer", daemon.freezer.code),
    ]
    add("build_info", "The daemon's version, policy and mode.", of: [(Labels(labels), 1)])
    guard let measured = daemon.measurements else { return }
    add("daemon_uptime_seconds", "Time since the daemon's start.", of: measured.upSeconds)
    add(
      "daemon_cpu_seconds_total", "Processor time of the daemon's process.", of: measured.cpuSeconds
    )
    add(
      "daemon_resident_memory_bytes", "Memory of the daemon's process in RAM.",
      of: measured.resident)
    add(
      "jetsam_reports_total",
      "Bursts of terminations for lack of memory, since the daemon's start.",
      of: measured.jetsamReports)
    histogram(
      "wake_duration_seconds",
      "From the order to wake a worker until it ran, by the state that it slept in.",
      of: measured.wakeTimes.map { (Labels([("from", $0.from)]), $0) })
    guard let hooks = measured.hooks else { return }
    add(
      "hooks_total",
      "Commands of `on:` by outcome; dropped: too many events waited, none was started.",
      by: "outcome",
      of: [
        ("succeeded", hooks.succeeded), ("failed", hooks.failed), ("timed_out", hooks.timedOut),
        ("dropped", hooks.dropped),
      ])
  }
}

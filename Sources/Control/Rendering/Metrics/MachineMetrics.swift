extension MetricsPage {
  /// The machine's memory, and the disk of the images.
  mutating func add(machine daemon: DaemonReport) {
    add(
      Metric(
        .gauge, "dormouse_memory_budget_bytes", unit: .bytes,
        help: "The memory against which pressure is measured: the machine's, or the policy's."),
      daemon.budget)
    add(
      Metric(
        .gauge, "dormouse_memory_available_bytes", unit: .bytes,
        help: "The part of the budget that is available."), daemon.available)
    add(
      Metric(
        .gauge, "dormouse_pressure_level",
        help: "The level of memory pressure: 1 for the level that holds, 0 for the others."),
      ["normal", "warning", "urgent", "critical"].map {
        (Labels([("level", $0)]), daemon.pressure == $0)
      })
    let measured = daemon.measurements
    add(
      Metric(
        .gauge, "dormouse_memory_stall_ratio", unit: .ratio,
        help: "Share of the time in which some tasks, or all of them, waited for memory (PSI)."),
      [
        (Labels([("share", "some")]), measured?.someStall.map { $0 / 100 }),
        (Labels([("share", "full")]), measured?.fullStall.map { $0 / 100 }),
      ])
    add(
      Metric(.gauge, "dormouse_swap_free_bytes", unit: .bytes, help: "Swap that is free."),
      measured?.swapFree)
    if let disk = measured?.imageDisk { add(disk: disk) }
    add(writesOf: daemon)
  }

  private mutating func add(disk: DaemonMeasurements.ImageDisk) {
    func gauge(_ name: String, _ help: String) -> Metric {
      Metric(.gauge, "dormouse_image_\(name)_bytes", unit: .bytes, help: help)
    }
    add(gauge("disk_used", "All images together."), disk.images)
    add(
      gauge("disk_budget", "The most that all images together may be (hibernate.disk.budget)."),
      disk.budget)
    add(
      gauge("filesystem_free", "What is free in the file system that has the images."), disk.free)
    add(gauge("filesystem_size", "The size of that file system."), disk.total)
    add(
      gauge(
        "filesystem_reserve",
        "What of that file system must stay free (hibernate.disk.min_free)."), disk.least)
  }

  /// These fall when an hour is more than a day ago, and so they are no counters.
  private mutating func add(writesOf daemon: DaemonReport) {
    add(
      Metric(
        .gauge, "dormouse_image_day_written_bytes", unit: .bytes,
        help: "What was written to images in the last 24 hours."), daemon.writtenInDay)
    add(
      Metric(
        .gauge, "dormouse_image_day_limit_bytes", unit: .bytes,
        help: "What may be written to images in 24 hours (hibernate.disk.daily_writes)."),
      daemon.dailyWrites)
    add(
      Metric(
        .gauge, "dormouse_image_day_hibernations",
        help: "Images that were written in the last 24 hours."), daemon.imagesInDay)
  }

  /// The daemon itself, and what it has done for all workers together.
  mutating func add(daemon: DaemonReport) {
    add(
      Metric(.info, "dormouse_build_info", help: "The daemon's version, policy and mode."),
      [
        (
          Labels([
            ("version", daemon.version), ("policy", daemon.policy), ("mode", daemon.mode),
            ("freezer", daemon.freezer.code),
          ]), 1
        )
      ])
    guard let measured = daemon.measurements else { return }
    add(
      Metric(
        .gauge, "dormouse_daemon_uptime_seconds", unit: .seconds, help: "Since the daemon's start."),
      measured.upSeconds)
    add(
      Metric(
        .counter, "dormouse_daemon_cpu_seconds_total", unit: .seconds,
        help: "Processor time of the daemon's process."), measured.cpuSeconds)
    add(
      Metric(
        .gauge, "dormouse_daemon_resident_memory_bytes", unit: .bytes,
        help: "Memory of the daemon's process in RAM."), measured.resident)
    add(
      Metric(
        .counter, "dormouse_jetsam_reports_total",
        help: "Bursts of terminations for lack of memory, since the daemon's start."),
      measured.jetsamReports)
    add(
      histogram: Metric(
        .histogram, "dormouse_wake_duration_seconds", unit: .seconds,
        help: "From the order to wake a worker until it ran, by the state that it slept in."),
      measured.wakeTimes.map { (Labels([("from", $0.from)]), $0) })
    if let hooks = measured.hooks { add(hooks: hooks) }
  }

  private mutating func add(hooks: DaemonMeasurements.Hooks) {
    add(
      Metric(
        .counter, "dormouse_hooks_total",
        help: "Commands of `on:` by outcome; dropped: too many events waited, none was started."),
      [
        ("succeeded", hooks.succeeded), ("failed", hooks.failed), ("timed_out", hooks.timedOut),
        ("dropped", hooks.dropped),
      ].map { (Labels([("outcome", $0.0)]), $0.1) })
  }
}

import Policy

/// A sentence on each key, for the JSON Schema. A test holds these complete.
enum KeyDescriptions {
  static let policy: [String: String] = [
    "name": "What the policy is called in reports. Default: the file's name.",
    "mode": "shadow decides, explains and reports everything, and does nothing.",
    "memory": "What the workers share.",
    "memory.budget":
      "host measures the machine; with a size, footprints play a device with so much memory.",
    "pressure": "When memory counts as short.",
    "pressure.sustained_for": "A condition must hold so long before the level rises.",
    "pressure.warn_once_per": "How often a worker is warned.",
    "pressure.swap":
      "Share of the free swap that counts as available memory at the levels urgent and critical.",
    "pressure.clear_after": "Conditions must have been gone so long before the level falls.",
    "foreground": "Which workers are in front.",
    "foreground.mode": "Who says so: a person or program, or the worker's own activity.",
    "foreground.max": "How many are in front at once.",
    "foreground.idle_after": "mode: activity: quiet for so long means idle.",
    "foreground.cpu_below":
      "mode: activity: processor time of one core that still counts as quiet.",
    "background": "What happens to workers that aren't in front.",
    "background.shed_deadline": "To answer a request to give memory back.",
    "background.task_limit": "The longest that a background task may put suspension off.",
    "background.safe_point": "What a suspension waits for, and how long at most.",
    "background.safe_point.file_locks": "A file lock that it holds.",
    "background.safe_point.hold": "X_DORMOUSE_HOLD=1.",
    "background.safe_point.after_launch": "So long after its launch.",
    "background.safe_point.after_wake": "So long after it was woken.",
    "background.heartbeat": "Sleeping workers run for a moment every so often.",
    "background.heartbeat.every": "From one moment to the next.",
    "background.heartbeat.for": "How long a moment is.",
    "background.heartbeat.hibernated": "true: hibernated ones, too.",
    "background.suspend_after": "Grace in the background before suspension.",
    "background.wake_for_timers":
      "A sleeping worker is woken for its own timers and time-outs that are at least so long.",
    "hibernate": "Which suspended workers leave memory for an image on disk.",
    "hibernate.enabled": "false: suspended workers stay in memory.",
    "hibernate.max_footprint": "Larger workers stay suspended.",
    "hibernate.min_footprint": "Smaller ones aren't worth the work.",
    "hibernate.after": "Suspended for so long before hibernating without pressure.",
    "hibernate.only_if_faster_than_relaunch":
      "Don't hibernate what would launch faster than it resumes.",
    "hibernate.cooldown": "After a resume, no hibernation for so long.",
    "hibernate.demote_after": "Not woken for so long, a hibernated worker is the first to go.",
    "hibernate.order": "Which worker is hibernated first.",
    "hibernate.resume":
      "All of its memory before it runs, what it wants first before it runs, or what proves faster.",
    "hibernate.overlay":
      "A hibernation writes only what has changed since the one before, whose image stays for that.",
    "hibernate.disk": "What images may use.",
    "hibernate.disk.budget": "The most that all images together may hold.",
    "hibernate.disk.min_free": "Share of the file system that must stay free.",
    "hibernate.disk.daily_writes": "The most that is written to images in a day.",
    "hibernate.compression": "How images are compressed.",
    "hibernate.compression.level": "Of zstd.",
    "hibernate.durability":
      "Whether memory is freed when the disk has confirmed the image, or as soon as the image is in the page cache.",
    "hibernate.encrypt":
      "Images are encrypted, with a key that only the kernel's keyring holds, by OpenSSL (Debian: libssl3). Without one of them, nothing is hibernated.",
    "hibernate.drop_file_pages":
      "Clean pages of files that nobody else uses leave memory, too.",
    "watchdog": "Deadlines, and what a missed one means.",
    "watchdog.launch": "From start to readiness, for workers that announce readiness.",
    "watchdog.answer": "From a request to its answer.",
    "watchdog.max_extension": "The most that EXTEND_TIMEOUT_USEC= is given.",
    "watchdog.on_timeout": "What a missed deadline means.",
    "early_wake": "Workers that are wanted again soon after they were put to sleep or ended.",
    "early_wake.within": "Wanted again within this time.",
    "early_wake.bonus": "Added to its band each time.",
    "early_wake.halves_every": "After each such time, the bonus and a raised idle time are halved.",
    "early_wake.max_idle":
      "A worker that keeps being wanted too soon gets a longer idle time, up to this. `never`: it doesn't.",
    "terminate": "How workers are ended, and in which order.",
    "terminate.grace": "From SIGTERM to SIGKILL.",
    "terminate.settle": "Wait for freed memory to show before the next victim or rung.",
    "terminate.order": "What decides between two victims; the first that differs wins.",
    "ladder": "What is done at each pressure level, cheapest loss first.",
  ].merging(levels) { first, _ in first }

  private static let levels: [String: String] = {
    var result: [String: String] = [:]
    for (level, place) in [("warning", "first"), ("urgent", "second"), ("critical", "last")] {
      result["pressure.\(level)"] = "Conditions of the \(place) level; any one of them raises it."
      result["pressure.\(level).available_below"] =
        "Available memory under this share of the budget, or this size."
      result["pressure.\(level).stall"] = "Tasks waited for memory (PSI)."
      result["pressure.\(level).stall.some"] = "Some task waited for this share of the window."
      result["pressure.\(level).stall.full"] = "All tasks waited for this share of the window."
      result["pressure.\(level).stall.window"] = "Over which the stall is measured."
      result["ladder.\(level)"] = "Rungs of the \(place) level, in the order of what they lose."
    }
    return result
  }()

  /// `*` stands for a worker's name.
  static let configuration: [String: String] = {
    var result = [
      "policy": "A shipped policy's name, or the path of a policy file.",
      "policy_overrides": "Keys of a policy, laid over it.",
      "state_directory": "Where images, logs and reports are kept.",
      "socket": "The control socket.",
      "workers": "What is supervised.",
      "journal": "What is kept of what happened, for events, report and replay.",
      "journal.enabled": "Whether it is kept.",
      "journal.path": "A directory that only the daemon's user may write to.",
      "journal.size": "A segment of this size is followed by the next.",
      "journal.keep": "The oldest segments go when all hold more than this many times the size.",
    ]
    for (key, text) in workers { result["workers.*.\(key)"] = text }
    return result
  }()

  private static let workers: [String: String] = [
    "command": "The program and its arguments.",
    "directory": "Where it runs.",
    "environment": "Variables, laid over the daemon's own and those of env_file.",
    "env_file": "Files of KEY=VALUE lines.",
    "user": "Who it runs as: a name or number.",
    "group": "The group it runs as: a name or number.",
    "umask": "Permission bits that its new files don't get, in octal.",
    "limits": "What it may use at most.",
    "limits.nofile": "Open files.",
    "limits.nproc": "Processes of its user.",
    "limits.core": "Size of a core dump.",
    "limits.memlock": "Locked memory.",
    "limits.stack": "The main thread's stack.",
    "limits.data": "Data segment and heap.",
    "limits.fsize": "Size of a file that it writes.",
    "limits.cpu": "Processor time.",
    "limits.sigpending": "Queued signals.",
    "limits.msgqueue": "POSIX message queues.",
    "limits.as": "Address space.",
    "limits.memory": "Memory of its whole process tree (memory.max of its cgroup).",
    "limits.oom_score_adj":
      "How readily the kernel's own OOM killer chooses it: -1000 (never) to 1000. Without it 0, or the "
      + "daemon's own where that is higher.",
    "importance": "Raises it among workers in the same state.",
    "autostart": "Launched with the daemon.",
    "depends_on": "Workers that must have come so far first.",
    "shed": "How it is asked to give memory back.",
    "shed.signal": "Sent if the worker catches it.",
    "shed.command": "Run for it.",
    "shed.http": "A request that is answered with a status from 200 to 299 when it is done.",
    "shed.http.method": "Default: POST", "shed.http.path": "Default: /",
    "shed.http.port": "From 1 to 65535.", "shed.http.host": "Default: 127.0.0.1",
    "shed.http.scheme": "HTTP.", "shed.http.httpHeaders": "Headers of the request.",
    "shed.notify": "Through systemd's MEMORY_PRESSURE_WATCH only.",
    "readiness": "How it says that it is ready.",
    "readiness.notify": "READY=1 to NOTIFY_SOCKET.",
    "readiness.notification_fd": "A line at this descriptor (s6).",
    "readiness.tcp": "This port accepts a connection.",
    "readiness.log_line": "A line of its output holds this text.",
    "readiness.log_pattern": "A line of its output matches this extended regular expression.",
    "notify": "It gets NOTIFY_SOCKET (sd_notify(3)) to send STATUS= and the like.",
    "fdstore":
      "How many descriptors it may store with the daemon, which hands them to its next run (FDSTORE=1).",
    "watchdog":
      "It sends WATCHDOG=1 to NOTIFY_SOCKET at least this often while it runs, or it is ended with SIGABRT.",
    "liveness": "Restarted when this fails.",
    "stop_signal": "Asks it to end.",
    "reload_signal": "Tells it to read its configuration again, for `dormouse reload NAME`.",
    "stop_grace": "How long that may take; the same as policy.terminate.grace.",
    "restart": "Whether it is started again when it has ended.",
    "restart.when": "After which ends.",
    "restart.backoff": "How long to wait before.",
    "restart.backoff.initial": "The first time.",
    "restart.backoff.max": "At most.",
    "restart.backoff.factor": "Longer by this each time.",
    "restart.give_up": "When to stop trying.",
    "restart.give_up.after": "So many restarts",
    "restart.give_up.within": "within so long.",
    "output": "Where its output goes.",
    "output.file": "Appended to.",
    "output.max_size": "A larger file is put aside.",
    "output.keep": "Files that were put aside, at most.",
    "listen": "Sockets that are opened for it (LISTEN_FDS).",
    "wake_at": "Lines of cron, in local time: when it is woken.",
    "health_checks_while_asleep": "Health checks that are answered while it sleeps.",
    "health_checks_while_asleep.port": "From 1 to 65535.",
    "health_checks_while_asleep.path": "Only this path is answered; without it, any connection.",
    "policy": "Keys of a policy for this worker alone.",
  ].merging(probes.merging(bounds) { first, _ in first }) { first, _ in first }

  private static let bounds = Dictionary(
    uniqueKeysWithValues: ResourceLimits.Resource.allCases.flatMap { resource in
      [
        (
          "limits.\(resource.rawValue).soft", "What holds; the worker may raise it to the hard one."
        ),
        ("limits.\(resource.rawValue).hard", "What the worker can't go beyond."),
      ]
    })

  private static let probes: [String: String] = {
    var result: [String: String] = [:]
    for section in ["readiness", "liveness"] {
      let keys = [
        "exec": "A command that exits with 0.", "exec.command": "The program and its arguments.",
        "httpGet": "A request that is answered with a status from 200 to 399.",
        "httpGet.path": "Default: /", "httpGet.port": "From 1 to 65535.",
        "httpGet.host": "Default: 127.0.0.1", "httpGet.scheme": "HTTP.",
        "httpGet.httpHeaders": "Headers of the request.",
        "tcpSocket": "A port that accepts a connection.", "tcpSocket.port": "From 1 to 65535.",
        "tcpSocket.host": "Default: 127.0.0.1",
        "initialDelaySeconds": "From launch to the first question.",
        "periodSeconds": "From one question to the next. Default: 10",
        "timeoutSeconds": "For an answer. Default: 1",
        "successThreshold": "Successes in a row after a failure. Default: 1",
        "failureThreshold": "Failures in a row. Default: 3",
      ]
      for (key, text) in keys { result["\(section).\(key)"] = text }
    }
    return result
  }()
}

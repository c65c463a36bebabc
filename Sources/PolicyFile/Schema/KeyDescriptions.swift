import Policy

/// A sentence on each key, for the JSON Schema. A test holds these complete.
enum KeyDescriptions {
  static let policy: [String: String] = [
    "extends":
      "Another policy, by its name or by the path of its file. Keys that this file leaves out have the values "
      + "of that policy.",
    "name": "The policy's name in reports. Default: the file's name without `.yaml`.",
    "mode":
      "`enforce`: decisions are applied. `shadow`: decisions are logged, and nothing changes.",
    "memory": "The memory that workers share.",
    "memory.budget":
      "`host`: the machine's memory is measured. A size over 0: an imaginary device with this "
      + "much memory, which only the workers use.",
    "pressure": "The conditions of each pressure level.",
    "pressure.sustained_for": "How long a condition must hold before the level rises.",
    "pressure.clear_after":
      "How long all conditions of a level must be over before the level falls.",
    "pressure.warn_once_per":
      "How often one worker is asked to free memory: once until the level is `normal` again "
      + "(`episode`), or once at each level (`level`).",
    "pressure.stalls_count_below":
      "While at least this share of the memory is available, stalls alone raise the level to "
      + "`warning` at most, 0 to 100 %.",
    "pressure.terminate_after":
      "How long a level that terminates must hold before a worker is terminated.",
    "pressure.swap":
      "The share of the free swap that counts as available memory at `urgent` and `critical`, "
      + "0 to 100 %. With `memory.budget: host` only.",
    "foreground": "Which workers are in the foreground.",
    "foreground.mode":
      "What decides: a request such as `dormouse foreground` (`manual`), or the worker's own "
      + "traffic and processor time (`activity`).",
    "foreground.max":
      "How many workers are in the foreground at once. One more displaces the one that has been there longest.",
    "foreground.idle_after":
      "With `mode: activity`: a worker that was quiet for this long is idle. Over 0.",
    "foreground.cpu_below":
      "With `mode: activity`: a worker that uses less of one core is quiet, 0 to 100 %.",
    "background": "What happens to workers in the background.",
    "background.shed_deadline": "The time that a worker has to free memory on request. Over 0.",
    "background.task_limit": "The longest time that a background task keeps a worker awake.",
    "background.safe_point": "The longest waits before a suspension. `0s`: no wait.",
    "background.safe_point.file_locks":
      "How long a suspension waits until the worker has released its file locks.",
    "background.safe_point.hold": "How long `X_DORMOUSE_HOLD=1` keeps a worker awake.",
    "background.safe_point.after_launch":
      "The policy suspends no worker for this long after its launch.",
    "background.safe_point.after_wake": "The policy suspends no worker for this long after a wake.",
    "background.heartbeat": "Sleeping workers run for a moment at intervals. `never`: they don't.",
    "background.heartbeat.every": "The time asleep before the worker runs. Over 0.",
    "background.heartbeat.for": "How long the worker runs each time. Over 0.",
    "background.heartbeat.hibernated":
      "`true`: hibernated workers are resumed for it, too. Default: `false`.",
    "background.suspend_after":
      "The time in the background before a worker is suspended. `never`: no worker is suspended.",
    "background.wake_for_timers":
      "A sleeping worker is woken for its own timers and time-outs of at least this length. `never`: it isn't.",
    "hibernate": "Which suspended workers are hibernated, and how.",
    "hibernate.enabled": "`false`: suspended workers stay in RAM.",
    "hibernate.max_footprint": "A worker with a larger footprint stays suspended.",
    "hibernate.min_footprint":
      "A worker with a smaller footprint stays suspended, because it would free too little.",
    "hibernate.after":
      "The time suspended before a worker is hibernated without pressure. `never`: only under pressure or on request.",
    "hibernate.at_once_up_to":
      "A worker of at most this footprint is hibernated as soon as it is suspended. `never`: all wait for `after`.",
    "hibernate.only_if_faster_than_relaunch":
      "`true`: a worker whose relaunch is faster than its resume isn't hibernated.",
    "hibernate.cooldown": "A worker isn't hibernated for this long after a resume.",
    "hibernate.demote_after":
      "A worker that was hibernated for this long without a wake counts as suspended in the order of termination.",
    "hibernate.order":
      "Which worker is hibernated first under pressure; the first criterion that differs decides.",
    "hibernate.resume":
      "`eager`: all memory is back before the worker runs. `lazy`: its working set first, the "
      + "rest while it runs. `auto`: what was faster before.",
    "hibernate.overlay":
      "`true`: an image holds only what changed since the last one, which stays on disk for "
      + "that. `false`: each image is complete.",
    "hibernate.disk": "What images may use of the disk.",
    "hibernate.disk.budget": "The most that all images together may hold.",
    "hibernate.disk.min_free": "The share of the file system that stays free, 0 to 100 %.",
    "hibernate.disk.daily_writes": "The most that is written to images in 24 hours.",
    "hibernate.compression": "How images are compressed.",
    "hibernate.compression.level": "The level of zstd, -7 (fastest) to 19 (smallest).",
    "hibernate.durability":
      "`synced`: memory is freed when the disk has confirmed the image. `cached`: when the image is in the page cache.",
    "hibernate.encrypt":
      "`true`: images are encrypted (AES-256-GCM, by OpenSSL's libcrypto.so.3), with a key in "
      + "the kernel's keyring. Without either, no worker is hibernated.",
    "hibernate.drop_file_pages":
      "`true`: clean pages of files that no other process uses leave RAM, too.",
    "watchdog": "Deadlines, and what happens after a missed one.",
    "watchdog.launch":
      "From the start of its process to readiness, for workers that announce readiness. Over 0.",
    "watchdog.answer":
      "From a request to free memory to its answer, for workers that have answered one before. Over 0.",
    "watchdog.max_extension": "The most that `EXTEND_TIMEOUT_USEC=` adds to one deadline, in all.",
    "watchdog.on_timeout":
      "What happens after a missed deadline: the worker is terminated (`terminate`), or it is only logged (`report`).",
    "early_wake":
      "What follows when a worker is needed soon after it was put to sleep or terminated.",
    "early_wake.within":
      "A wake this soon after a suspension, or a start this soon after a termination for memory, is early.",
    "early_wake.bonus": "Points that each early wake adds to the worker's band, 0 to 29.",
    "early_wake.halves_every":
      "The bonus, and a longer idle time, are halved each time this has passed. Over 0.",
    "early_wake.max_idle":
      "After repeated early wakes the worker's idle times double, up to this. `never`: they stay.",
    "terminate": "How workers are terminated, and in which order.",
    "terminate.grace": "From the stop signal to SIGKILL.",
    "terminate.settle": "The wait for freed memory to show before the next termination or rung.",
    "terminate.order":
      "Which of two workers is terminated first; the first criterion that differs decides.",
    "terminate.ask":
      "A notice is given this long before a worker is terminated for lack of memory; `dormouse protect` keeps it. "
      + "`terminate: ask` is short for `5s`.",
    "terminate.for_memory":
      "`false`: a worker with this policy isn't terminated for lack of memory. `terminate: never` is short for it.",
    "ladder":
      "The rungs of each pressure level: what is done until the level falls. The smallest loss is first.",
  ].merging(levels) { first, _ in first }

  private static let levels: [String: String] = {
    var result: [String: String] = [:]
    for (level, place) in [("warning", "first"), ("urgent", "second"), ("critical", "last")] {
      let never = level == "critical" ? "" : " `never`: the level isn't reached."
      result["pressure.\(level)"] =
        "Conditions of the \(place) level. Any one of them raises it.\(never)"
      result["pressure.\(level).available_below"] =
        "Less memory is available than this: a share of the budget (0 to 100 %), or a size."
      result["pressure.\(level).stall"] =
        "Tasks wait for memory (PSI). It needs `some` or `full`."
      result["pressure.\(level).stall.some"] =
        "Some task waited for this share of the window, over 0 up to 100 %."
      result["pressure.\(level).stall.full"] =
        "All tasks that had work waited for this share of the window, over 0 up to 100 %."
      result["pressure.\(level).stall.window"] =
        "The time over which the stall is measured, 500ms to 10s. Default: 2s."
      result["ladder.\(level)"] =
        "The rungs of the \(place) level, in this order. The smallest loss is first."
    }
    return result
  }()

  /// `*` stands for a worker's name.
  static let configuration: [String: String] = {
    var result = [
      "policy": "The name of a shipped policy, or the path of a policy file. Default: standard.",
      "policy_overrides": "Keys of a policy that replace those of `policy`.",
      "state_directory": "The directory of images, logs and reports.",
      "socket": "The path of the control socket, at most 107 bytes.",
      "workers": "The workers, by name.",
      "journal": "The history for `events`, `report` and `replay`.",
      "journal.enabled": "`false`: no history is written. Default: `true`.",
      "journal.path":
        "A directory to which only the daemon's user may write. Default: `journal` in the state directory.",
      "journal.size":
        "A segment of this size is followed by the next, 64KB to 1GB. Default: 8MB.",
      "journal.keep":
        "The oldest segments are removed when all of them hold more than this many times `size`, 1 to 10000. "
        + "Default: 8.",
    ]
    for (key, text) in AdoptionKeyDescriptions.all { result[key] = text }
    for (key, text) in WorkerKeyDescriptions.all { result["workers.*.\(key)"] = text }
    for (key, text) in HookKeyDescriptions.all { result[key] = text }
    for (key, text) in HookKeyDescriptions.ofWorker { result["workers.*.\(key)"] = text }
    return result
  }()
}

import Policy

/// A sentence on each key of a worker in `dormouse.yaml`, for the JSON Schema.
enum WorkerKeyDescriptions {
  static let all: [String: String] = own.merging(probes) { first, _ in first }
    .merging(bounds) { first, _ in first }

  private static let own: [String: String] = [
    "command": "The program and its arguments: a list, or a text that is split at blanks.",
    "directory": "The working directory. Default: the configuration's directory.",
    "environment": "Variables. They replace those of `env_file` and of the daemon.",
    "env_file": "A file of `KEY=VALUE` lines, or several.",
    "user": "The user that the worker runs as: a name or a number. Default: the daemon's.",
    "group": "The group that the worker runs as: a name or a number. Default: the daemon's.",
    "instances":
      "The names of several workers that this entry declares, `ENTRY-NAME` each: a list, or a mapping with variables "
      + "for each. `${INSTANCE}` is the name.",
    "replicas":
      "How many workers this entry declares: `ENTRY-1`, `ENTRY-2` and so on. `${INSTANCE}` is the number.",
    "groups": "Groups that the worker belongs to. Verbs take `@GROUP` for its workers.",
    "umask":
      "Permission bits that the worker's new files don't get, in octal. Default: the daemon's.",
    "limits": "The most that the worker may use.",
    "limits.nofile": "Open files of one process.",
    "limits.nproc": "Processes and threads of the worker's user.",
    "limits.core": "The size of a core dump.",
    "limits.memlock": "Locked memory of one process.",
    "limits.stack": "The stack of a process's main thread.",
    "limits.data": "Data segment and heap of one process.",
    "limits.fsize": "The size of a file that a process writes.",
    "limits.cpu": "Processor time of one process.",
    "limits.sigpending": "Queued signals of the worker's user.",
    "limits.msgqueue": "POSIX message queues of the worker's user.",
    "limits.as": "Address space of one process.",
    "limits.memory":
      "Memory of all of the worker's processes together (`memory.max` of its cgroup).",
    "limits.footprint":
      "What happens to the worker by its measured footprint, without a memory controller. One size is "
      + "short for `restart`.",
    "limits.footprint.warn": "Over this the worker is asked to free memory.",
    "limits.footprint.hibernate": "Over this it is hibernated as soon as it isn't in use.",
    "limits.footprint.restart":
      "Over this it is ended in an orderly way and started again, when it isn't in use.",
    "limits.footprint.sustained_for": "How long the footprint must be over a limit.",
    "limits.oom_score_adj":
      "How readily the kernel's OOM killer chooses the worker: -1000 (never) to 1000. Default: "
      + "0, or the daemon's value if that is higher.",
    "importance":
      "0 to 100. Among workers in the same state, a higher one is terminated later. Default: 0.",
    "autostart": "Whether the worker is started with the daemon. Default: `true`.",
    "depends_on":
      "Workers that have to be ready first; a mapping names another condition for each.",
    "shed": "How the worker is asked to free memory.",
    "shed.signal": "A signal. It is sent only if the worker has a handler for it.",
    "shed.command": "A command to run: the program and its arguments.",
    "shed.http": "A request to send. A status from 200 to 299 means that the memory is free.",
    "shed.http.method": "Default: POST.",
    "shed.http.path": "Default: /.",
    "shed.http.port": "1 to 65535.",
    "shed.http.host": "An address, or localhost. Default: 127.0.0.1.",
    "shed.http.scheme": "HTTP only.",
    "shed.http.httpHeaders": "Headers of the request, each with `name` and `value`.",
    "shed.notify": "`true`: only through systemd's MEMORY_PRESSURE_WATCH.",
    "readiness": "The condition that makes the worker ready. Default: it is ready at once.",
    "readiness.notify": "`true`: the worker sends `READY=1` to NOTIFY_SOCKET.",
    "readiness.notification_fd": "The worker writes a line to this descriptor (s6), 3 to 1023.",
    "readiness.tcp": "This port accepts a connection, 1 to 65535.",
    "readiness.log_line": "A line of the worker's output contains this text.",
    "readiness.log_pattern":
      "A whole line of the worker's output matches this extended regular expression.",
    "notify": "`true`: the worker gets NOTIFY_SOCKET (sd_notify(3)). Default: `false`.",
    "fdstore":
      "How many descriptors the worker may store with the daemon for its next run (`FDSTORE=1`), 0 to 512. Default: 0.",
    "watchdog":
      "The worker has to send `WATCHDOG=1` to NOTIFY_SOCKET at least this often, from 1s. If "
      + "it doesn't, it is ended with SIGABRT.",
    "liveness":
      "A probe of the running worker. A worker that fails it is terminated; `restart` says what follows.",
    "stop_command":
      "A command that asks the worker to end. `stop_signal` follows when it has ended, at the latest after half of "
      + "`stop_grace`.",
    "stop_signal": "The signal that asks the worker to end. Default: TERM.",
    "reload_signal":
      "The signal that makes the worker read its own configuration again (`dormouse reload NAME`).",
    "stop_grace": "From `stop_signal` to SIGKILL. Another name for `policy.terminate.grace`.",
    "restart": "Whether the worker is started again after it has ended. Default: `after-shortage`.",
    "restart.when":
      "After which ends: none (`no`), a termination for lack of memory (`after-shortage`), a failure "
      + "(`on-failure`), or each (`always`, `unless-stopped`).",
    "restart.backoff": "The wait before a restart.",
    "restart.backoff.initial": "The wait before the first restart. Default: 1s.",
    "restart.backoff.max":
      "The longest wait. A run longer than this resets the back-off. Default: 1m.",
    "restart.backoff.factor":
      "Each wait is this many times as long as the one before, 1 to 100. Default: 2.",
    "restart.give_up":
      "After how many restarts the worker isn't started again. `never`: it always is.",
    "restart.give_up.after": "The number of restarts, 0 to 1000. Default: 5.",
    "restart.give_up.within": "The time within which these restarts count. Default: 10m.",
    "output": "The log of the worker's output.",
    "output.file": "The file to append to. Default: a file in the state directory.",
    "output.max_size": "A larger file is rotated. Default: none is.",
    "output.keep": "How many rotated files are kept, 0 to 1000. Default: 5.",
    "listen":
      "Sockets that the daemon opens for the worker (LISTEN_FDS): an address, a list, or names with addresses.",
    "wake_at": "When the worker is woken, in local time: a line of cron, or a list.",
    "wake_with":
      "Workers that are woken at the same time as this one, if they sleep. None is started.",
    "health_checks_while_asleep":
      "TCP ports at which the daemon answers health checks while the worker sleeps.",
    "health_checks_while_asleep.port": "1 to 65535.",
    "health_checks_while_asleep.path":
      "Only requests of this path are answered. Without it, connections that are closed without a byte.",
    "policy": "Keys of a policy for this worker alone.",
  ]

  private static let bounds = Dictionary(
    uniqueKeysWithValues: ResourceLimits.Resource.allCases.flatMap { resource in
      [
        (
          "limits.\(resource.rawValue).soft",
          "The limit in effect. The worker may raise it up to `hard`."
        ),
        (
          "limits.\(resource.rawValue).hard",
          "The most to which the worker may raise its limit."
        ),
      ]
    })

  private static let probes: [String: String] = {
    var result: [String: String] = [:]
    for section in ["readiness", "liveness"] {
      let keys = [
        "exec": "A command. Exit status 0 is success.",
        "exec.command": "The program and its arguments.",
        "httpGet": "A request. A status from 200 to 399 is success.",
        "httpGet.path": "Default: /.", "httpGet.port": "1 to 65535.",
        "httpGet.host": "An address, or localhost. Default: 127.0.0.1.",
        "httpGet.scheme": "HTTP only.",
        "httpGet.httpHeaders": "Headers of the request, each with `name` and `value`.",
        "tcpSocket": "A port. A connection is success.", "tcpSocket.port": "1 to 65535.",
        "tcpSocket.host": "An address, or localhost. Default: 127.0.0.1.",
        "initialDelaySeconds":
          "Seconds from launch to the first question, 0 to 86400. Default: 0.",
        "periodSeconds": "Seconds from one question to the next, 1 to 86400. Default: 10.",
        "timeoutSeconds": "Seconds that an answer may take, 1 to 86400. Default: 1.",
        "successThreshold":
          "Successes in a row that are needed after a failure, 1 to 1000. Default: 1.",
        "failureThreshold": "Failures in a row that are needed, 1 to 1000. Default: 3.",
      ]
      for (key, text) in keys { result["\(section).\(key)"] = text }
    }
    return result
  }()
}

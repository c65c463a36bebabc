import Policy

/// A sentence on each key in a section of a worker in `dormouse.yaml`, for the JSON Schema.
enum WorkerKeyDescriptions {
  static let all: [String: String] = own.merging(probes) { first, _ in first }
    .merging(bounds) { first, _ in first }

  private static let own: [String: String] = [
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
    "readiness.notify": "`true`: the worker sends `READY=1` to NOTIFY_SOCKET.",
    "readiness.notification_fd": "The worker writes a line to this descriptor (s6), 3 to 1023.",
    "readiness.tcp": "This port accepts a connection, 1 to 65535.",
    "readiness.log_line": "A line of the worker's output contains this text.",
    "readiness.log_pattern":
      "A whole line of the worker's output matches this extended regular expression.",
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
    "output.file": "The file to append to. Default: a file in the state directory.",
    "output.max_size": "A larger file is rotated. Default: none is.",
    "output.keep": "How many rotated files are kept, 0 to 1000. Default: 5.",
    "health_checks_while_asleep.port": "1 to 65535.",
    "health_checks_while_asleep.path":
      "Only requests of this path are answered. Without it, connections that are closed without a byte.",
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

import WorkerProtocol

/// A worker's message on `NOTIFY_SOCKET`: the fields of sd_notify(3) that have a meaning here, and
/// Dormouse's own fields, which begin with `X_DORMOUSE_`.
public enum NotifyMessage: Hashable, Sendable {
  /// `READY=1`
  case ready
  /// `RELOADING=1`
  case reloading
  /// `STOPPING=1`
  case stopping
  /// `WATCHDOG=1`
  case watchdog
  /// `WATCHDOG=trigger`: the worker has detected a failure of its own, and asks for a restart.
  case watchdogTrigger
  /// `WATCHDOG_USEC=`: the interval at which `WATCHDOG=1` will be sent from now on. Zero ends the
  /// watchdog.
  case watchdogInterval(Duration)
  /// `STATUS=`: a text for the operator. Its control characters are removed.
  case status(String)
  /// `EXTEND_TIMEOUT_USEC=`: the current deadline becomes this duration from now.
  case extendTimeout(Duration)
  /// `MAINPID=`: a pid in the sender's pid namespace. It is only valid if it is one of the worker's
  /// processes.
  case mainProcess(Int32)
  /// `X_DORMOUSE_HOLD=`: while it is 1, the worker must not be suspended.
  case hold(Bool)
  /// `X_DORMOUSE_DONE=1`: the worker has answered a request to shed memory.
  case shedDone
  /// `X_DORMOUSE_TASK=`: a background task with this name has begun. Only a message over
  /// `DORMOUSE_WORKER_SOCKET` can give it a limit.
  case taskBegan(String, limit: Duration? = nil)
  /// `X_DORMOUSE_TASK_END=`: the background task with this name has ended.
  case taskEnded(String)

  /// The number of fields of one datagram that are read. Further fields are ignored.
  static let maxFields = 64

  /// The known fields of a datagram, in its order. Other fields are ignored.
  public static func parse(_ datagram: some Collection<UInt8>) -> [NotifyMessage] {
    datagram.split(separator: UInt8(ascii: "\n")).prefix(maxFields).compactMap { line in
      guard let equals = line.firstIndex(of: UInt8(ascii: "=")) else { return nil }
      let key = line[..<equals].prefix(64)
      let value = line[line.index(after: equals)...].prefix(WorkerProtocol.maxText)
      return message(
        String(decoding: key, as: UTF8.self), String(decoding: value, as: UTF8.self))
    }
  }

  private static func message(_ key: String, _ value: String) -> NotifyMessage? {
    switch (key, value) {
    case ("READY", "1"): .ready
    case ("RELOADING", "1"): .reloading
    case ("STOPPING", "1"): .stopping
    case ("WATCHDOG", "1"): .watchdog
    case ("WATCHDOG", "trigger"): .watchdogTrigger
    case ("WATCHDOG_USEC", _): microseconds(value).map { .watchdogInterval($0) }
    case ("STATUS", _): .status(WorkerProtocol.shown(value))
    case ("EXTEND_TIMEOUT_USEC", _): microseconds(value).map { .extendTimeout($0) }
    case ("MAINPID", _): Int32(value).flatMap { $0 > 0 ? .mainProcess($0) : nil }
    case ("X_DORMOUSE_HOLD", "1"): .hold(true)
    case ("X_DORMOUSE_HOLD", "0"): .hold(false)
    case ("X_DORMOUSE_DONE", "1"): .shedDone
    case ("X_DORMOUSE_TASK", _): value.isEmpty ? nil : .taskBegan(WorkerProtocol.shown(value))
    case ("X_DORMOUSE_TASK_END", _): value.isEmpty ? nil : .taskEnded(WorkerProtocol.shown(value))
    default: nil
    }
  }

  /// Longer times than a year count as a year: microseconds times a thousand must not overflow.
  private static func microseconds(_ value: String) -> Duration? {
    UInt64(value).map { .microseconds(min($0, 31_536_000_000_000)) }
  }

  /// Converts a message of `DORMOUSE_WORKER_SOCKET`. Returns nil for a message that has no
  /// counterpart in sd_notify(3).
  public init?(_ message: WorkerMessage) {
    switch message {
    case .ready: self = .ready
    case .status(let text): self = .status(WorkerProtocol.shown(text))
    case .hold(let holds): self = .hold(holds)
    case .beginTask(let name, let limit):
      // Longer limits than a year count as a year: seconds times a thousand must not overflow.
      let limit = limit.map { Duration.milliseconds(Int64(min($0, 31_536_000) * 1000)) }
      self = .taskBegan(WorkerProtocol.shown(name), limit: limit)
    case .endTask(let name): self = .taskEnded(WorkerProtocol.shown(name))
    case .hello, .done, .snapshot, .purgeable: return nil
    }
  }
}

import WorkerProtocol

/// A worker's message on `NOTIFY_SOCKET`: the fields of sd_notify(3) that have a meaning here, and Dormouse's
/// own, which begin with `X_DORMOUSE_`.
public enum NotifyMessage: Hashable, Sendable {
  /// `READY=1`
  case ready
  /// `RELOADING=1`
  case reloading
  /// `STOPPING=1`
  case stopping
  /// `WATCHDOG=1`
  case watchdog
  /// `WATCHDOG=trigger`: the worker has found itself broken, and has to be restarted.
  case watchdogTrigger
  /// `WATCHDOG_USEC=`: `WATCHDOG=1` comes this often from now on. Zero: it doesn't come any more.
  case watchdogInterval(Duration)
  /// `STATUS=`, for the operator. Fit for a terminal.
  case status(String)
  /// `EXTEND_TIMEOUT_USEC=`: the deadline in force, this long from now.
  case extendTimeout(Duration)
  /// `MAINPID=`. In the sender's pid namespace; only valid for the worker's own processes.
  case mainProcess(Int32)
  /// `X_DORMOUSE_HOLD=`: the worker must not be suspended until it is 0 again.
  case hold(Bool)
  /// `X_DORMOUSE_DONE=1`: the answer to a request to shed memory.
  case shedDone
  /// `X_DORMOUSE_TASK=` and `X_DORMOUSE_TASK_END=`, with the task's name. A limit can only be given over
  /// `DORMOUSE_WORKER_SOCKET`.
  case taskBegan(String, limit: Duration? = nil)
  case taskEnded(String)

  /// Further fields in one datagram aren't read.
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
    case ("X_DORMOUSE_TASK", _): value.isEmpty ? nil : .taskBegan(taskName(value))
    case ("X_DORMOUSE_TASK_END", _): value.isEmpty ? nil : .taskEnded(taskName(value))
    default: nil
    }
  }

  /// A year counts as for ever; and microseconds times a thousand must not overflow.
  private static func microseconds(_ value: String) -> Duration? {
    UInt64(value).map { .microseconds(min($0, 31_536_000_000_000)) }
  }

  /// What a line over `DORMOUSE_WORKER_SOCKET` says in other words; nil where only the protocol knows it.
  public init?(_ message: WorkerMessage) {
    switch message {
    case .ready: self = .ready
    case .status(let text): self = .status(WorkerProtocol.shown(text))
    case .hold(let holds): self = .hold(holds)
    case .beginTask(let name, let limit):
      // A year counts as for ever, as above.
      let limit = limit.map { Duration.milliseconds(Int64(min($0, 31_536_000) * 1000)) }
      self = .taskBegan(Self.taskName(name), limit: limit)
    case .endTask(let name): self = .taskEnded(Self.taskName(name))
    case .hello, .done, .snapshot, .purgeable: return nil
    }
  }

  /// A task's name as it is shown, and by which it is known.
  public static func taskName(_ name: String) -> String { WorkerProtocol.shown(name) }
}

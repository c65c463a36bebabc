import JSONLines

/// A message from the daemon to a worker: one line.
public enum DaemonMessage: Hashable, Sendable {
  /// The first message on each connection. The state and the level are names from the daemon's
  /// vocabulary.
  case hello(version: Int, worker: String, state: String, pressure: String)
  /// A request, which the worker answers with `WorkerMessage.done`.
  case request(id: UInt64, deadlineSeconds: Double, Request)
  /// The worker runs again, after this sleep.
  case didResume(id: UInt64, asleepSeconds: Double, cause: String)
  /// The worker is in use again. It is a notification, which needs no answer.
  case didEnterForeground(id: UInt64)
  /// The machine's pressure level has changed.
  case pressure(level: String)
  /// The daemon couldn't read a line of the worker. `message` has the reason.
  case error(message: String)

  /// What the daemon asks for.
  public enum Request: Hashable, Sendable {
    /// The worker isn't in use any more.
    case didEnterBackground
    /// The worker must free memory. `footprintBytes` is its footprint, as the daemon has measured
    /// it.
    case memoryWarning(level: String, footprintBytes: Int64)
    /// The worker is about to be suspended.
    case willSuspend
    /// The worker is about to be terminated.
    case willTerminate(reason: String)
    /// The time of a task is over: it doesn't keep the worker awake any longer.
    case taskExpired(task: String)
  }
}

extension DaemonMessage {
  /// The message as JSON, without a line end.
  public var line: [UInt8] { json.line }

  private var json: JSON {
    switch self {
    case .hello(let version, let worker, let state, let pressure):
      .message(
        "hello", ("version", .int(Int64(version))), ("worker", .string(worker)),
        ("state", .string(state)), ("pressure", .string(pressure)))
    case .request(let id, let deadline, let request):
      .message(
        request.type,
        [("id", .id(id)), ("deadlineSeconds", .double(deadline))] + request.fields)
    case .didResume(let id, let asleep, let cause):
      .message(
        "didResume", ("id", .id(id)), ("asleepSeconds", .double(asleep)),
        ("cause", .string(cause)))
    case .didEnterForeground(let id): .message("didEnterForeground", ("id", .id(id)))
    case .pressure(let level): .message("pressure", ("level", .string(level)))
    case .error(let message): .message("error", ("message", .string(message)))
    }
  }

  /// Reads a line. The result is `nil` if its type is unknown: a newer daemon may send it.
  public static func read(_ line: [UInt8]) throws(WorkerMessageError) -> DaemonMessage? {
    let fields = try MessageFields(line)
    switch fields.type {
    case "hello":
      return .hello(
        version: Int(try fields.integer("version")), worker: try fields.text("worker"),
        state: try fields.text("state"), pressure: try fields.text("pressure"))
    case "didResume":
      return .didResume(
        id: try fields.id(), asleepSeconds: try fields.number("asleepSeconds"),
        cause: try fields.text("cause"))
    case "didEnterForeground": return .didEnterForeground(id: try fields.id())
    case "pressure": return .pressure(level: try fields.text("level"))
    case "error": return .error(message: try fields.text("message"))
    default:
      guard let request = try Request.read(fields) else { return nil }
      return .request(
        id: try fields.id(), deadlineSeconds: try fields.number("deadlineSeconds"), request)
    }
  }
}

extension DaemonMessage.Request {
  var type: String {
    switch self {
    case .didEnterBackground: "didEnterBackground"
    case .memoryWarning: "memoryWarning"
    case .willSuspend: "willSuspend"
    case .willTerminate: "willTerminate"
    case .taskExpired: "taskExpired"
    }
  }

  fileprivate var fields: [(String, JSON)] {
    switch self {
    case .didEnterBackground, .willSuspend: []
    case .memoryWarning(let level, let footprint):
      [("level", .string(level)), ("footprintBytes", .int(footprint))]
    case .willTerminate(let reason): [("reason", .string(reason))]
    case .taskExpired(let task): [("task", .string(task))]
    }
  }

  fileprivate static func read(
    _ fields: MessageFields
  ) throws(WorkerMessageError) -> DaemonMessage.Request? {
    switch fields.type {
    case "didEnterBackground": return .didEnterBackground
    case "memoryWarning":
      return .memoryWarning(
        level: try fields.text("level"), footprintBytes: try fields.integer("footprintBytes"))
    case "willSuspend": return .willSuspend
    case "willTerminate": return .willTerminate(reason: try fields.text("reason"))
    case "taskExpired": return .taskExpired(task: try fields.text("task"))
    default: return nil
    }
  }
}

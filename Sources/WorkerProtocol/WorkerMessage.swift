import JSONLines

/// A message from a worker to the daemon: one line.
public enum WorkerMessage: Hashable, Sendable {
  /// The first message on each connection.
  case hello(version: Int)
  /// The worker has started and can be used.
  case ready
  /// The answer to the request with that id.
  case done(id: UInt64)
  /// A background task has begun. Without a limit it may last as long as the policy allows.
  case beginTask(name: String, limitSeconds: Double?)
  /// A background task has ended.
  case endTask(name: String)
  /// Asks the daemon not to suspend the worker, or withdraws that.
  case hold(Bool)
  /// Sets the snapshot that is shown while the worker sleeps.
  case snapshot(Snapshot)
  /// The worker offers memory, or the offer has changed. The first such message has a descriptor
  /// with it.
  case purgeable
  /// Sets the status that is shown beside the worker's name.
  case status(String)

  /// The snapshot that is shown of a worker while it sleeps.
  public enum Snapshot: Hashable, Sendable {
    case text(String)
    /// An image of a MIME type, encoded as Base64.
    case image(mime: String, base64: String)
  }
}

extension WorkerMessage {
  /// The message as JSON, without a line end.
  public var line: [UInt8] { json.line }

  private var json: JSON {
    switch self {
    case .hello(let version): .message("hello", ("version", .int(Int64(version))))
    case .ready: .message("ready")
    case .done(let id): .message("done", ("id", .id(id)))
    case .beginTask(let name, let limit):
      .message(
        "beginTask",
        [("task", .string(name))] + (limit.map { [("limitSeconds", .double($0))] } ?? []))
    case .endTask(let name): .message("endTask", ("task", .string(name)))
    case .hold(let on): .message("hold", ("on", .bool(on)))
    case .snapshot(.text(let text)): .message("snapshot", ("text", .string(text)))
    case .snapshot(.image(let mime, let base64)):
      .message("snapshot", ("mime", .string(mime)), ("data", .string(base64)))
    case .purgeable: .message("purgeable")
    case .status(let text): .message("status", ("text", .string(text)))
    }
  }

  /// Reads a line. The result is `nil` if its type is unknown: a newer worker may send it.
  public static func read(_ line: [UInt8]) throws(WorkerMessageError) -> WorkerMessage? {
    let fields = try MessageFields(line)
    switch fields.type {
    case "hello": return .hello(version: Int(clamping: try fields.integer("version")))
    case "ready": return .ready
    case "done": return .done(id: try fields.id())
    case "beginTask":
      return .beginTask(name: try fields.name("task"), limitSeconds: try fields.limit())
    case "endTask": return .endTask(name: try fields.name("task"))
    case "hold": return .hold(try fields.flag("on"))
    case "snapshot":
      if fields.has("text") { return .snapshot(.text(try fields.text("text"))) }
      return .snapshot(
        .image(mime: try fields.text("mime"), base64: try fields.text("data")))
    case "purgeable": return .purgeable
    case "status": return .status(try fields.text("text"))
    default: return nil
    }
  }
}

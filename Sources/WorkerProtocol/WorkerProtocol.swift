/// The messages between workers and their daemon over `DORMOUSE_WORKER_SOCKET`, as values; no I/O
/// is done here. docs/worker-protocol.md defines them.
public enum WorkerProtocol {
  /// The only version so far.
  public static let version = 1
  /// The environment variable with the path of a worker's socket.
  public static let socketVariable = "DORMOUSE_WORKER_SOCKET"
  /// The maximum length of a line in bytes, without the line end.
  public static let maxLine = 262_144
}

/// A line that the other side can't read. The description is half a sentence, without the sender.
public struct WorkerMessageError: Error, Hashable, Sendable, CustomStringConvertible {
  public var description: String
  public init(_ description: String) { self.description = description }
}

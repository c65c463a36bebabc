/// The messages between workers and their daemon over `DORMOUSE_WORKER_SOCKET`: docs/worker-protocol.md. Both
/// sides' lines as values; no I/O.
public enum WorkerProtocol {
  /// The only version so far.
  public static let version = 1
  /// Where a worker finds its socket.
  public static let socketVariable = "DORMOUSE_WORKER_SOCKET"
  /// Bytes, without the line end.
  public static let maxLine = 262_144
}

/// A line that the other side can't read; half a sentence.
public struct WorkerMessageError: Error, Hashable, Sendable, CustomStringConvertible {
  public var description: String
  public init(_ description: String) { self.description = description }
}

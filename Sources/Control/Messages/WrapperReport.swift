/// A wrapper's report to a daemon.
public struct WrapperReport: Codable, Hashable, Sendable {
  public var pid: Int32
  /// The path of the socket at which the wrapper accepts requests for its worker, in this same
  /// protocol.
  public var socket: String
  public var worker: WorkerReport
  /// True if it may be terminated when memory is short (`--may-terminate`).
  public var mayBeTerminated: Bool?
  /// True if it can be asked to free memory (`--shed-signal`, `--shed-command`).
  public var canShed: Bool?

  public init(
    pid: Int32, socket: String, worker: WorkerReport, mayBeTerminated: Bool? = nil,
    canShed: Bool? = nil
  ) {
    self.pid = pid
    self.socket = socket
    self.worker = worker
    self.mayBeTerminated = mayBeTerminated
    self.canShed = canShed
  }
}

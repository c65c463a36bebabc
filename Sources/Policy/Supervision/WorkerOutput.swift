/// `output:`. Where a worker's output is written, and how much of it is kept.
public struct WorkerOutput: Hashable, Sendable {
  /// `nil`: the daemon's own directory of logs.
  public var file: String?
  /// The file is rotated when it is larger than this. `nil`: never.
  public var maxSize: ByteCount?
  /// The number of rotated files at most; the oldest is removed first.
  public var keep: Int

  public init(file: String? = nil, maxSize: ByteCount? = nil, keep: Int = 5) {
    self.file = file
    self.maxSize = maxSize
    self.keep = keep
  }
}

/// One entry of `health_checks_while_asleep:`: a health check that is answered for a sleeping worker without waking
/// it.
public struct AsleepAnswer: Hashable, Sendable {
  public var port: UInt16
  /// A request for this path is answered with 200. `nil`: a connection that closes again counts as a
  /// check.
  public var path: String?

  public init(port: UInt16, path: String? = nil) {
    self.port = port
    self.path = path
  }
}

/// `output:`. Where a worker's output is written, and how much of it is kept.
public struct WorkerOutput: Hashable, Sendable {
  /// The file. `nil`: a file in the daemon's directory of logs.
  public var file: String?
  /// The size in bytes above which the file is rotated. `nil`: never.
  public var maxSize: ByteCount?
  /// The largest number of rotated files. The oldest is removed first.
  public var keep: Int

  public init(file: String? = nil, maxSize: ByteCount? = nil, keep: Int = 5) {
    self.file = file
    self.maxSize = maxSize
    self.keep = keep
  }
}

/// One entry of `health_checks_while_asleep:`: a health check that is answered for a sleeping
/// worker without waking it.
public struct AsleepAnswer: Hashable, Sendable {
  public var port: UInt16
  /// The path of the request that is answered with 200. `nil`: a connection that closes without
  /// data counts as a check.
  public var path: String?

  public init(port: UInt16, path: String? = nil) {
    self.port = port
    self.path = path
  }
}

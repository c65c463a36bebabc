import Policy

/// The uses of workers over time, which drive a simulated fleet. Times are milliseconds since its
/// start.
public struct Trace: Sendable, Equatable {
  /// For people: which generator with which seed, or which files.
  public var name: String
  public var length: Int64
  public var workers: [TraceWorker]
  /// Sorted by time.
  public var uses: [Use]
  /// The memory that the rest of the machine uses from a time on; sorted by time.
  public var others: [HostChange]

  public init(
    name: String, length: Int64, workers: [TraceWorker], uses: [Use], others: [HostChange] = []
  ) {
    self.name = name
    self.length = length
    self.workers = workers
    self.uses = uses
    self.others = others
  }

  /// One use of a worker, or `count` of them in close succession, of which the first finds the
  /// worker as it is and the others find it running.
  public struct Use: Sendable, Equatable {
    public var at: Int64
    public var worker: Int32
    /// Milliseconds.
    public var duration: Int32
    public var count: Int32

    public init(at: Int64, worker: Int32, duration: Int32, count: Int32 = 1) {
      self.at = at
      self.worker = worker
      self.duration = duration
      self.count = count
    }
  }

  public struct HostChange: Sendable, Equatable {
    public var at: Int64
    /// 0–1 of the machine's memory.
    public var share: Double

    public init(at: Int64, share: Double) {
      self.at = at
      self.share = share
    }
  }

  /// The footprint of all workers together if none ever ended.
  public var footprint: ByteCount { workers.reduce(.zero) { $0 + $1.footprint } }
  public var useCount: Int { uses.reduce(0) { $0 + Int($1.count) } }
}

public struct TraceWorker: Sendable, Equatable {
  public var name: String
  /// The footprint after it has been used for a while.
  public var footprint: ByteCount
  /// From start to readiness.
  public var launch: Duration
  /// Bytes that it gains in an hour of running.
  public var leak: ByteCount
  public var importance: Int

  public init(
    name: String, footprint: ByteCount, launch: Duration, leak: ByteCount = .zero,
    importance: Int = 0
  ) {
    self.name = name
    self.footprint = footprint
    self.launch = launch
    self.leak = leak
    self.importance = importance
  }
}

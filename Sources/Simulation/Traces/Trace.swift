import Policy

/// The uses of workers over time, which drive a simulated fleet. Times are milliseconds since the
/// trace's start.
public struct Trace: Sendable, Equatable {
  /// A description for people: the generator and its seed, or the files.
  public var name: String
  /// The length in milliseconds.
  public var length: Int64
  public var workers: [TraceWorker]
  /// The uses, sorted by time.
  public var uses: [Use]
  /// The memory that the other programs of the machine use from a time on, sorted by time.
  public var others: [HostChange]
  /// When workers ended by themselves or on request, sorted by time.
  public var ends: [End]

  public init(
    name: String, length: Int64, workers: [TraceWorker], uses: [Use], others: [HostChange] = [],
    ends: [End] = []
  ) {
    self.name = name
    self.length = length
    self.workers = workers
    self.uses = uses
    self.others = others
    self.ends = ends
  }

  /// One use of a worker, or `count` uses in close succession. The first finds the worker as it is,
  /// and the others find it running. A count of 0 continues the use before it.
  public struct Use: Sendable, Equatable {
    public var at: Int64
    /// The index of the worker in `workers`.
    public var worker: Int32
    /// The duration in milliseconds.
    public var duration: Int32
    /// The number of uses that this one stands for.
    public var count: Int32
    /// True for the worker's own work, such as for its timer: no client waits for it.
    public var isSelfInitiated: Bool

    public init(
      at: Int64, worker: Int32, duration: Int32, count: Int32 = 1, isSelfInitiated: Bool = false
    ) {
      self.at = at
      self.worker = worker
      self.duration = duration
      self.count = count
      self.isSelfInitiated = isSelfInitiated
    }
  }

  public struct HostChange: Sendable, Equatable {
    public var at: Int64
    /// The share of the machine's memory, 0–1.
    public var share: Double

    public init(at: Int64, share: Double) {
      self.at = at
      self.share = share
    }
  }

  public struct End: Sendable, Equatable {
    public var at: Int64
    public var worker: Int32

    public init(at: Int64, worker: Int32) {
      self.at = at
      self.worker = worker
    }
  }

  /// The footprint of all workers together if none ever ended.
  public var footprint: ByteCount { workers.reduce(.zero) { $0 + $1.footprint } }
  /// The number of uses by clients.
  public var useCount: Int { uses.reduce(0) { $0 + ($1.isSelfInitiated ? 0 : Int($1.count)) } }

  /// Returns the last `length` milliseconds of the trace. Workers that ran at that time run at its
  /// start.
  ///
  /// - Parameter length: milliseconds.
  public func suffix(_ length: Int64) -> Trace {
    let start = self.length - length
    guard start > 0 else { return self }
    var result = self
    result.length = length
    for index in result.workers.indices {
      result.workers[index].start = self.start(of: index, at: start)
    }
    result.uses = uses.filter { $0.at >= start }
    result.ends = ends.filter { $0.at >= start }
    let before = others.last { $0.at <= start }.map { [HostChange(at: start, share: $0.share)] }
    result.others = (before ?? []) + others.filter { $0.at > start }
    for index in result.uses.indices { result.uses[index].at -= start }
    for index in result.ends.indices { result.ends[index].at -= start }
    for index in result.others.indices { result.others[index].at -= start }
    return result
  }

  private func start(of worker: Int, at start: Int64) -> TraceWorker.Start {
    let used = uses.last { $0.worker == worker && $0.at < start }?.at
    let ended = ends.last { $0.worker == worker && $0.at < start }?.at
    guard let ended else { return used == nil ? workers[worker].start : .running }
    return (used ?? -1) > ended ? .running : .absent
  }
}

public struct TraceWorker: Sendable, Equatable {
  public var name: String
  /// The footprint after the worker has been used for a while.
  public var footprint: ByteCount
  /// The time from the start until the worker is ready.
  public var launch: Duration
  /// The bytes by which the footprint grows in an hour of running.
  public var leak: ByteCount
  public var importance: Int
  public var start: Start

  /// The state of its processes when the trace begins.
  public enum Start: String, Sendable, CaseIterable { case absent, running, hibernated }

  public init(
    name: String, footprint: ByteCount, launch: Duration, leak: ByteCount = .zero,
    importance: Int = 0, start: Start = .absent
  ) {
    self.name = name
    self.footprint = footprint
    self.launch = launch
    self.leak = leak
    self.importance = importance
    self.start = start
  }
}

/// A jetsam report: one burst of terminations for lack of memory. Sizes are in bytes.
public struct JetsamRecord: Codable, Hashable, Sendable {
  public var id: String
  /// Wall clock, ISO 8601.
  public var time: String
  public var policy: String
  public var level: String
  public var why: CodedText
  public var budget: Int64
  public var availableBefore: Int64
  public var availableAfter: Int64
  public var largest: String?
  public var workers: [Entry]
  /// The machine's memory when the first worker was chosen.
  public var host: Host?
  /// The largest processes of the machine at that moment; nil if they couldn't be read in time, or
  /// an earlier version wrote the report.
  public var largestProcesses: Processes?

  public struct Processes: Codable, Hashable, Sendable {
    /// The processes, the largest first.
    public var list: [Process]
    /// False if there was no time to read all of the machine's processes.
    public var isComplete: Bool

    public init(list: [Process], isComplete: Bool) {
      self.list = list
      self.isComplete = isComplete
    }
  }

  public struct Process: Codable, Hashable, Sendable {
    public var pid: Int32
    /// The kernel's name of the process, at most 15 bytes.
    public var name: String
    /// The number of bytes in RAM.
    public var resident: Int64
    /// The name of the worker that it belongs to.
    public var worker: String?

    public init(pid: Int32, name: String, resident: Int64, worker: String? = nil) {
      self.pid = pid
      self.name = name
      self.resident = resident
      self.worker = worker
    }
  }

  /// The machine's memory. Sizes are in bytes.
  public struct Host: Codable, Hashable, Sendable {
    public var total: Int64
    public var free: Int64
    /// The memory that the kernel can reclaim without swapping.
    public var reclaimable: Int64
    /// The kernel's own memory, and locked memory.
    public var wired: Int64
    /// The sum of the footprints of all workers.
    public var workers: Int64
    /// The share of the time in which some tasks waited for memory, 0–100 %; nil without PSI.
    public var someStall: Double?
    /// The share of the time in which all tasks waited for memory, 0–100 %; nil without PSI.
    public var fullStall: Double?

    public init(
      total: Int64, free: Int64, reclaimable: Int64, wired: Int64, workers: Int64,
      someStall: Double? = nil, fullStall: Double? = nil
    ) {
      self.total = total
      self.free = free
      self.reclaimable = reclaimable
      self.wired = wired
      self.workers = workers
      self.someStall = someStall
      self.fullStall = fullStall
    }
  }

  public struct Entry: Codable, Hashable, Sendable {
    public var name: String
    public var state: String
    public var band: Int
    public var footprint: Int64
    public var peakFootprint: Int64
    public var secondsSinceUse: Double
    /// The time since its launch, or since it was adopted.
    public var secondsOfAge: Double?
    /// Why this worker was chosen, if it was terminated.
    public var victimBecause: CodedText?
    /// The bytes that its termination freed.
    public var gaveBack: Int64?
    /// Why this worker wasn't terminated, if it was protected.
    public var protection: CodedText?

    public init(
      name: String, state: String, band: Int, footprint: Int64, peakFootprint: Int64,
      secondsSinceUse: Double, secondsOfAge: Double? = nil, victimBecause: CodedText? = nil,
      gaveBack: Int64? = nil
    ) {
      self.name = name
      self.state = state
      self.band = band
      self.footprint = footprint
      self.peakFootprint = peakFootprint
      self.secondsSinceUse = secondsSinceUse
      self.secondsOfAge = secondsOfAge
      self.victimBecause = victimBecause
      self.gaveBack = gaveBack
    }
  }

  public init(
    id: String, time: String, policy: String, level: String, why: CodedText, budget: Int64,
    availableBefore: Int64, availableAfter: Int64, largest: String?, workers: [Entry],
    host: Host? = nil, largestProcesses: Processes? = nil
  ) {
    self.largestProcesses = largestProcesses
    self.id = id
    self.time = time
    self.policy = policy
    self.level = level
    self.why = why
    self.budget = budget
    self.availableBefore = availableBefore
    self.availableAfter = availableAfter
    self.largest = largest
    self.workers = workers
    self.host = host
  }
}

/// A jetsam report: one burst of terminations for memory.
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
  /// The machine's memory when the first victim was chosen.
  public var host: Host?
  /// The largest processes of the machine at that moment; nil: they couldn't be read in time, or an earlier
  /// version wrote the report.
  public var largestProcesses: Processes?

  public struct Processes: Codable, Hashable, Sendable {
    /// The largest first.
    public var list: [Process]
    /// False: there was no time to read all of the machine's processes.
    public var isComplete: Bool

    public init(list: [Process], isComplete: Bool) {
      self.list = list
      self.isComplete = isComplete
    }
  }

  public struct Process: Codable, Hashable, Sendable {
    public var pid: Int32
    /// The kernel's name of it, 15 bytes at most.
    public var name: String
    /// Bytes in RAM.
    public var resident: Int64
    /// The worker that it belongs to.
    public var worker: String?

    public init(pid: Int32, name: String, resident: Int64, worker: String? = nil) {
      self.pid = pid
      self.name = name
      self.resident = resident
      self.worker = worker
    }
  }

  /// Sizes in bytes.
  public struct Host: Codable, Hashable, Sendable {
    public var total: Int64
    public var free: Int64
    /// What the kernel can take back without swapping.
    public var reclaimable: Int64
    /// The kernel's own, and what is locked.
    public var wired: Int64
    /// The footprints of all workers.
    public var workers: Int64
    /// Share of the time stalled on memory, 0–100 %; nil without PSI.
    public var someStall: Double?
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
    /// Since its launch, or since it was adopted.
    public var secondsOfAge: Double?
    /// Set where this worker was terminated: why it was chosen.
    public var victimBecause: CodedText?
    public var gaveBack: Int64?
    /// Set where this worker was protected: why it wasn't terminated.
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

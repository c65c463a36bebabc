/// The daemon itself, and the machine.
public struct DaemonReport: Codable, Hashable, Sendable {
  public var pid: Int32
  public var version: String
  public var policy: String
  public var mode: String
  public var pressure: String
  /// The level that was set by request; seconds until it is measured again.
  public var pressureSet: String?
  public var pressureSetSeconds: Double?
  /// Bytes: the budget (the host's memory, or the device's), and what of it is available.
  public var budget: Int64
  public var available: Int64
  public var budgetIsHost: Bool
  /// The directory of the cgroup whose limit leaves least of the host's memory; nil: none limits it.
  public var limitedBy: String?
  /// How workers are suspended: `cgroup-v2 freezer` or `SIGSTOP`.
  public var freezer: CodedText
  public var stateDirectory: String
  /// The configuration's file, where `run --save` adds workers; nil: there is none.
  public var configuration: String?
  /// What shadow mode would have done with all workers.
  public var shadow: ShadowReport?
  /// The last 24 hours' hibernations: bytes written to images, of how many that may be; how long they
  /// took together; how many there were.
  public var writtenInDay: Int64?
  public var dailyWrites: Int64?
  public var hibernatingSecondsInDay: Double?
  public var imagesInDay: Int64?
  /// Of all workers, today and in the last seven days.
  public var savings: RecentSavingsReport?
  /// For programs that draw curves; only in `status`.
  public var measurements: DaemonMeasurements?

  public init(
    pid: Int32, version: String, policy: String, mode: String, pressure: String, budget: Int64,
    available: Int64, budgetIsHost: Bool, freezer: CodedText, stateDirectory: String
  ) {
    self.pid = pid
    self.version = version
    self.policy = policy
    self.mode = mode
    self.pressure = pressure
    self.budget = budget
    self.available = available
    self.budgetIsHost = budgetIsHost
    self.freezer = freezer
    self.stateDirectory = stateDirectory
  }
}

/// The state of the daemon and of the machine. Sizes are in bytes.
public struct DaemonReport: Codable, Hashable, Sendable {
  public var pid: Int32
  public var version: String
  public var policy: String
  public var mode: String
  public var pressure: String
  /// The pressure level that was set by request; nil if the level is measured.
  public var pressureSet: String?
  /// The seconds until the level is measured again.
  public var pressureSetSeconds: Double?
  /// The memory that all workers together may use: the host's, or the device's of the policy.
  public var budget: Int64
  /// The part of the budget that is available.
  public var available: Int64
  /// True if the budget is the host's memory.
  public var budgetIsHost: Bool
  /// The directory of the cgroup that limits the host's memory most; nil if none limits it.
  public var limitedBy: String?
  /// How workers are suspended: `cgroup-v2 freezer` or `SIGSTOP`.
  public var freezer: CodedText
  public var stateDirectory: String
  /// The path of the configuration, to which `run --save` adds workers; nil if there is none.
  public var configuration: String?
  /// What shadow mode would have done with all workers.
  public var shadow: ShadowReport?
  /// The bytes that hibernations of the last 24 hours have written to images.
  public var writtenInDay: Int64?
  /// The maximum number of bytes that may be written in 24 hours; nil if there is no limit.
  public var dailyWrites: Int64?
  /// The total time of the hibernations of the last 24 hours, in seconds.
  public var hibernatingSecondsInDay: Double?
  /// The number of hibernations of the last 24 hours.
  public var imagesInDay: Int64?
  /// What sleep saved for all workers, today and in the last seven days.
  public var savings: RecentSavingsReport?
  /// Measurements for programs that draw curves. Only `status` reports them.
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

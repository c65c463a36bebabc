/// What sleep saved in a span of time, of one worker or of all.
public struct SavingsReport: Codable, Hashable, Sendable {
  /// The memory by which hibernation made footprints smaller, over time: byte·hours.
  public var byteHours: Double
  /// Suspended or hibernated, and with processes at all; of several workers the sums.
  public var asleepSeconds: Double
  public var aliveSeconds: Double
  /// Resumes from hibernation, and how long half of them and 95 % of them took at the most; right within
  /// 10 %.
  public var resumes: Int
  public var resumeP50: Double?
  public var resumeP95: Double?

  public init(
    byteHours: Double, asleepSeconds: Double, aliveSeconds: Double, resumes: Int,
    resumeP50: Double? = nil, resumeP95: Double? = nil
  ) {
    self.byteHours = byteHours
    self.asleepSeconds = asleepSeconds
    self.aliveSeconds = aliveSeconds
    self.resumes = resumes
    self.resumeP50 = resumeP50
    self.resumeP95 = resumeP95
  }
}

/// Today (UTC), and the seven days that end with it.
public struct RecentSavingsReport: Codable, Hashable, Sendable {
  public var today: SavingsReport
  public var week: SavingsReport

  public init(today: SavingsReport, week: SavingsReport) {
    self.today = today
    self.week = week
  }
}

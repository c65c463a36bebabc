/// What sleep saved in a period, for one worker or for all.
public struct SavingsReport: Codable, Hashable, Sendable {
  /// The memory by which hibernation made footprints smaller, over time, in byte·hours.
  public var byteHours: Double
  /// The time in which the worker was suspended or hibernated. For several workers it is a sum.
  public var asleepSeconds: Double
  /// The time in which the worker had processes. For several workers it is a sum.
  public var aliveSeconds: Double
  /// The number of resumes from hibernation.
  public var resumes: Int
  /// The median duration of the resumes in seconds, within 10 %.
  public var resumeP50: Double?
  /// The 95th percentile of the duration of the resumes in seconds, within 10 %.
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

/// Savings of today (UTC), and of the seven days that end with it.
public struct RecentSavingsReport: Codable, Hashable, Sendable {
  public var today: SavingsReport
  public var week: SavingsReport

  public init(today: SavingsReport, week: SavingsReport) {
    self.today = today
    self.week = week
  }
}

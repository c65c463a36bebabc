// The answer to `explain`. Sizes in bytes, times in seconds.

/// `explain WORKER`: why it is in its state, what prevents the next step, what would change its state.
public struct ExplanationReport: Codable, Hashable, Sendable {
  public var worker: String
  public var state: String
  public var secondsInState: Double
  /// Why it is in this state: a clause.
  public var because: CodedText
  /// The policy's key that led to it.
  public var key: String?
  /// The step that the policy alone would take next.
  public var next: String?
  /// All that prevents it. Empty if nothing does.
  public var obstacles: [Obstacle]
  public var moves: [Move]
  public var isShadow: Bool
  /// Early wakes: how many there were, and their effect.
  public var earlyWake: EarlyWakeReport?
  /// The measured effect of the last request to free memory.
  public var lastShed: ShedReport?
  /// Its answers to warnings freed nothing; a clause whose subject is the worker.
  public var fruitlessWarnings: CodedText?
  /// What it waited for when it last fell asleep and isn't woken by, because nothing can watch that in
  /// its place; clauses such as `the release of a file lock`.
  public var unwatched: [String]?
  /// Work of its own that doesn't go on while it sleeps, and what helps; a clause.
  public var stoppedWork: CodedText?
  /// It may lose memory; absent: no sign of it.
  public var leak: LeakReport?
  /// The rule of `adopt:` by which it was adopted.
  public var rule: String?
  /// Why it isn't terminated for lack of memory; absent: it may be.
  public var protection: CodedText?
  /// After this time `protect --for` ends by itself.
  public var protectedSeconds: Double?
  /// When it was last used, and how often it is.
  public var activity: ActivityReport?
  /// What would let it sleep; absent: nothing prevents it, or only time does.
  public var remedy: RemedyReport?

  public init(
    worker: String, state: String, secondsInState: Double, because: CodedText, key: String? = nil,
    next: String? = nil, obstacles: [Obstacle] = [], moves: [Move] = [], isShadow: Bool = false,
    earlyWake: EarlyWakeReport? = nil
  ) {
    self.worker = worker
    self.state = state
    self.secondsInState = secondsInState
    self.because = because
    self.key = key
    self.next = next
    self.obstacles = obstacles
    self.moves = moves
    self.isShadow = isShadow
    self.earlyWake = earlyWake
  }

  public struct Obstacle: Codable, Hashable, Sendable {
    /// Which obstacle it is; nil: of an earlier daemon.
    public var code: String?
    public var text: String
    /// The policy's key that decides.
    public var key: String?
    /// Time alone removes it, after this long.
    public var clearsInSeconds: Double?
    public var measured: Int64?
    public var limit: Int64?

    public init(
      code: String? = nil, text: String, key: String? = nil, clearsInSeconds: Double? = nil,
      measured: Int64? = nil,
      limit: Int64? = nil
    ) {
      self.code = code
      self.text = text
      self.key = key
      self.clearsInSeconds = clearsInSeconds
      self.measured = measured
      self.limit = limit
    }
  }

  public struct Move: Codable, Hashable, Sendable {
    public var to: String
    /// What kind of thing would move it; nil: of an earlier daemon.
    public var code: String?
    public var text: String
    /// By time alone, after this long.
    public var afterSeconds: Double?
    public var key: String?

    public init(
      to: String, code: String? = nil, text: String, afterSeconds: Double? = nil,
      key: String? = nil
    ) {
      self.to = to
      self.code = code
      self.text = text
      self.afterSeconds = afterSeconds
      self.key = key
    }
  }
}

/// `explain --next`: which workers are terminated and hibernated first, with the numbers behind it.
public struct RankingReport: Codable, Hashable, Sendable {
  public var pressure: String
  /// `terminate.order` and `hibernate.order`, as they stand in the policy.
  public var terminationOrder: [String]
  public var termination: [Place]
  public var hibernationOrder: [String]
  public var hibernation: [Place]
  /// Nothing of it is done: the policy is in shadow mode.
  public var isShadow: Bool?

  public init(
    pressure: String, terminationOrder: [String], termination: [Place],
    hibernationOrder: [String], hibernation: [Place]
  ) {
    self.pressure = pressure
    self.terminationOrder = terminationOrder
    self.termination = termination
    self.hibernationOrder = hibernationOrder
    self.hibernation = hibernation
  }

  public struct Place: Codable, Hashable, Sendable {
    public var worker: String
    public var state: String
    /// The sum of the next three.
    public var band: Int
    public var bandOfState: Int
    public var bandOfImportance: Int
    /// For early wakes.
    public var bandBonus: Int
    /// Hibernated, and not woken for a time after which it counts as suspended.
    public var isDemoted: Bool
    public var footprint: Int64
    public var secondsSinceUse: Double
    public var launchSeconds: Double?
    public var regret: Regret
    /// What decided that it stands before the next one.
    public var before: CodedText?
    /// The pressure level from which on it may be terminated or hibernated.
    public var fromPressure: String?
    /// When time alone changes its band or its regret.
    public var changesInSeconds: Double?
    public var obstacles: [ExplanationReport.Obstacle]

    public init(
      worker: String, state: String, band: Int, bandOfState: Int, bandOfImportance: Int,
      bandBonus: Int, isDemoted: Bool, footprint: Int64, secondsSinceUse: Double,
      launchSeconds: Double? = nil, regret: Regret, before: CodedText? = nil,
      fromPressure: String? = nil, changesInSeconds: Double? = nil,
      obstacles: [ExplanationReport.Obstacle] = []
    ) {
      self.worker = worker
      self.state = state
      self.band = band
      self.bandOfState = bandOfState
      self.bandOfImportance = bandOfImportance
      self.bandBonus = bandBonus
      self.isDemoted = isDemoted
      self.footprint = footprint
      self.secondsSinceUse = secondsSinceUse
      self.launchSeconds = launchSeconds
      self.regret = regret
      self.before = before
      self.fromPressure = fromPressure
      self.changesInSeconds = changesInSeconds
      self.obstacles = obstacles
    }
  }

  /// Chance of use soon × cost of coming back / bytes freed.
  public struct Regret: Codable, Hashable, Sendable {
    public var millisecondsPerMegabyte: Double
    /// Of use within ten minutes, 0–1.
    public var chance: Double
    /// Learned, between two uses.
    public var meanIntervalSeconds: Double?
    public var costSeconds: Double
    /// Measured, and no guess.
    public var isCostKnown: Bool

    public init(
      millisecondsPerMegabyte: Double, chance: Double, meanIntervalSeconds: Double? = nil,
      costSeconds: Double, isCostKnown: Bool
    ) {
      self.millisecondsPerMegabyte = millisecondsPerMegabyte
      self.chance = chance
      self.meanIntervalSeconds = meanIntervalSeconds
      self.costSeconds = costSeconds
      self.isCostKnown = isCostKnown
    }
  }
}

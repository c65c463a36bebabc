// The responses to `explain`. Sizes are in bytes, times in seconds.

/// Why a worker is in its state, what prevents the next step, and what would change its state
/// (`explain WORKER`).
public struct ExplanationReport: Codable, Hashable, Sendable {
  public var worker: String
  public var state: String
  public var secondsInState: Double
  /// The reason for this state, as a clause.
  public var because: CodedText
  /// The policy's key that led to this state.
  public var key: String?
  /// The step that the policy alone would take next.
  public var next: String?
  /// Everything that prevents the next step. It is empty if nothing does.
  public var obstacles: [Obstacle]
  /// What would change the worker's state.
  public var moves: [Move]
  public var isShadow: Bool
  /// The number of early wakes, and their effect.
  public var earlyWake: EarlyWakeReport?
  /// The measured effect of the last request to free memory.
  public var lastShed: ShedReport?
  /// Set if its answers to memory warnings freed nothing. The text is a clause whose subject is the
  /// worker.
  public var fruitlessWarnings: CodedText?
  /// What it waited for when it last fell asleep, and isn't woken by, because the daemon can't
  /// watch it. Each is a clause such as `the release of a file lock`.
  public var unwatched: [String]?
  /// Work of its own that doesn't continue while it sleeps, and what helps, as a clause.
  public var stoppedWork: CodedText?
  /// Evidence that it may leak memory; absent if there is none.
  public var leak: LeakReport?
  /// The rule of `adopt:` by which it was adopted.
  public var rule: String?
  /// Why it isn't terminated for lack of memory; absent if it may be.
  public var protection: CodedText?
  /// The seconds until `protect --for` ends by itself.
  public var protectedSeconds: Double?
  /// When it was last used, and how often it is.
  public var activity: ActivityReport?
  /// Its trims; absent if it wasn't trimmed, has all memory in RAM, and its policy doesn't trim it.
  public var trim: TrimReport?
  /// What would let it sleep; absent if nothing prevents it, or only time does.
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
    /// The kind of obstacle; nil in a report of an earlier daemon.
    public var code: String?
    public var text: String
    /// The policy's key that decides.
    public var key: String?
    /// The time after which it ends without any other change.
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

  /// Something that would change a worker's state.
  public struct Move: Codable, Hashable, Sendable {
    public var to: String
    /// The kind of event that would change the state; nil in a report of an earlier daemon.
    public var code: String?
    public var text: String
    /// The time after which the state changes without any other event.
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

/// The order in which workers are terminated and hibernated, with the numbers behind it (`explain
/// --next`).
public struct RankingReport: Codable, Hashable, Sendable {
  public var pressure: String
  /// `terminate.order` as the policy has it.
  public var terminationOrder: [String]
  /// The workers in the order in which they would be terminated.
  public var termination: [Entry]
  /// `hibernate.order` as the policy has it.
  public var hibernationOrder: [String]
  /// The workers in the order in which they would be hibernated.
  public var hibernation: [Entry]
  /// True if the policy is in shadow mode, so that none of it is applied.
  public var isShadow: Bool?

  public init(
    pressure: String, terminationOrder: [String], termination: [Entry],
    hibernationOrder: [String], hibernation: [Entry]
  ) {
    self.pressure = pressure
    self.terminationOrder = terminationOrder
    self.termination = termination
    self.hibernationOrder = hibernationOrder
    self.hibernation = hibernation
  }

  /// One worker in a ranking, with the numbers that decide its position.
  public struct Entry: Codable, Hashable, Sendable {
    public var worker: String
    public var state: String
    /// The sum of `bandOfState`, `bandOfImportance` and `bandBonus`.
    public var band: Int
    public var bandOfState: Int
    public var bandOfImportance: Int
    /// The number by which the band is higher because of early wakes.
    public var bandBonus: Int
    /// True if it is hibernated, and wasn't woken for so much time that it counts as suspended.
    public var isDemoted: Bool
    public var footprint: Int64
    public var secondsSinceUse: Double
    public var launchSeconds: Double?
    public var regret: Regret
    /// The criterion by which it comes before the next worker.
    public var before: CodedText?
    /// The lowest pressure level at which it may be terminated or hibernated.
    public var fromPressure: String?
    /// The time after which its band or regret changes without any other event.
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

  /// The expected cost of freeing a worker's memory: the chance of use soon × the cost of a wake or
  /// relaunch / the bytes freed.
  public struct Regret: Codable, Hashable, Sendable {
    public var millisecondsPerMegabyte: Double
    /// The chance of a use within ten minutes, 0–1.
    public var chance: Double
    /// The learned mean time between two uses.
    public var meanIntervalSeconds: Double?
    /// The time that a client waits for the wake or relaunch.
    public var costSeconds: Double
    /// True if the cost was measured, and false if it is a guess.
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

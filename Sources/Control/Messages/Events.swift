/// Something that happened, as `events` reports it. Sizes in bytes, times in seconds.
public struct EventRecord: Codable, Hashable, Sendable {
  /// Wall clock, ISO 8601, UTC, with milliseconds.
  public var time: String
  /// `state`, `failed`, `refused`, `memory`, `pressure`, `jetsam`, `policy`, `shadow`, `daemon`, or
  /// `lost`: this many events are missing here, because the client didn't read.
  public var kind: String
  public var worker: String?
  /// `state`: the states at rest before and after.
  public var from: String?
  public var to: String?
  /// `state`: why, for programs; as the code of `reason` in `status`.
  public var code: String?
  /// `pressure` and `jetsam`.
  public var level: String?
  /// `memory`: why it was asked for: `warning`, `background`, `purge`, or `task`, whose time is over. With
  /// `freed` it is the outcome, without it the request. `limit`: over a limit of its footprint. `notice`: it will be terminated, in
  /// `seconds`; `withdrawn`: it won't.
  public var occasion: String?
  /// One sentence, without the worker's name.
  public var text: String
  /// The footprint before, and the bytes that were freed.
  public var seconds: Double?
  public var freed: Int64?
  public var lost: Int?

  public init(time: String, kind: String, text: String) {
    self.time = time
    self.kind = kind
    self.text = text
  }
}

/// Where the daemon keeps past events, all of them written until `at`.
public struct JournalPlace: Codable, Hashable, Sendable {
  /// The journal's segments; nil where the configuration has none.
  public var directory: String?
  /// The counts by day.
  public var reports: String
  /// The daemon's life, as segments name it.
  public var run: String?
  /// Of the daemon's clock, in nanoseconds. Events that a follower gets happened after this.
  public var at: Int64

  public init(directory: String?, reports: String, run: String?, at: Int64) {
    self.directory = directory
    self.reports = reports
    self.run = run
    self.at = at
  }
}

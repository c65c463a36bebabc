/// An event as `events` reports it. Sizes are in bytes, times in seconds.
public struct EventRecord: Codable, Hashable, Sendable {
  /// Wall clock, ISO 8601, UTC, with milliseconds.
  public var time: String
  /// The kind is `state`, `failed`, `refused`, `memory`, `pressure`, `jetsam`, `policy`, `shadow`,
  /// `daemon` or `lost`. `lost` means that events are missing here because the client didn't read.
  public var kind: String
  public var worker: String?
  /// The state before. Only stable states are reported (`state`).
  public var from: String?
  /// The state after (`state`).
  public var to: String?
  /// The reason as a code for programs, as in `reason` of `status` (`state`).
  public var code: String?
  /// The pressure level (`pressure` and `jetsam`).
  public var level: String?
  /// The occasion (`memory`). `warning`, `background`, `purge` and `task` (a background task whose
  /// time is over) are reasons for freeing memory: with `freed` the event is the outcome, without
  /// it the request. `limit`: the footprint is over a limit. `notice`: the worker will be
  /// terminated in `seconds`. `withdrawn`: it won't be. `trim`, `fill`: memory of a running worker
  /// was moved out of RAM, or back.
  public var occasion: String?
  /// One sentence, without the worker's name.
  public var text: String
  /// The time in seconds until the termination that a `notice` announces.
  public var seconds: Double?
  /// The number of bytes that were freed.
  public var freed: Int64?
  /// The number of missing events (`lost`).
  public var lost: Int?

  public init(time: String, kind: String, text: String) {
    self.time = time
    self.kind = kind
    self.text = text
  }
}

/// The location of past events. All events until `at` have been written to it.
public struct JournalLocation: Codable, Hashable, Sendable {
  /// The directory of the journal's segments; nil if the configuration has none.
  public var directory: String?
  /// The file with the counts by day.
  public var reports: String
  /// The daemon's run, as the segments name it.
  public var run: String?
  /// The time of the daemon's clock, in nanoseconds. Events that a follower gets happened after it.
  public var at: Int64

  public init(directory: String?, reports: String, run: String?, at: Int64) {
    self.directory = directory
    self.reports = reports
    self.run = run
    self.at = at
  }
}

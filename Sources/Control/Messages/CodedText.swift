/// Prose with its code. Programs go by the code, in snake_case, which never changes its meaning; people
/// read the text, which may be worded otherwise in any version.
public struct CodedText: Codable, Hashable, Sendable {
  public var code: String
  public var text: String

  public init(_ code: String, _ text: String) {
    self.code = code
    self.text = text
  }

  /// What is known only as prose: a peer or a file of an earlier version.
  public static let unknownCode = "other"

  private enum CodingKeys: CodingKey { case code, text }

  public init(from decoder: any Decoder) throws {
    do {
      let values = try decoder.container(keyedBy: CodingKeys.self)
      self.init(
        try values.decode(String.self, forKey: .code), try values.decode(String.self, forKey: .text)
      )
    } catch DecodingError.typeMismatch {
      self.init(Self.unknownCode, try decoder.singleValueContainer().decode(String.self))
    }
  }
}

/// What asking a worker to give memory back achieved, as measured. Sizes in bytes.
public struct ShedReport: Codable, Hashable, Sendable {
  /// `gave_back` or `gave_nothing_back`.
  public var code: String
  public var text: String
  /// `warning` or `background`: why it was asked.
  public var occasion: String
  /// In time.
  public var isAnswered: Bool
  public var before: Int64
  public var after: Int64

  public init(
    code: String, text: String, occasion: String, isAnswered: Bool, before: Int64, after: Int64
  ) {
    self.code = code
    self.text = text
    self.occasion = occasion
    self.isAnswered = isAnswered
    self.before = before
    self.after = after
  }
}

/// That a worker was put away too early, and what came of that. Times in seconds.
public struct EarlyWakeReport: Codable, Hashable, Sendable {
  /// `put_away_too_early`.
  public var code = "put_away_too_early"
  public var text: String
  public var count: Int
  public var lastSecondsAgo: Double
  /// Points of band that it has for it now.
  public var bandBonus: Int
  /// Its idle times that were raised.
  public var raised: [RaisedIdle]

  public struct RaisedIdle: Codable, Hashable, Sendable {
    /// `background.suspend_after` or `hibernate.after`.
    public var key: String
    /// As the policy says, and as it is now.
    public var declaredSeconds: Double
    public var seconds: Double

    public init(key: String, declaredSeconds: Double, seconds: Double) {
      self.key = key
      self.declaredSeconds = declaredSeconds
      self.seconds = seconds
    }
  }

  public init(
    text: String, count: Int, lastSecondsAgo: Double, bandBonus: Int, raised: [RaisedIdle] = []
  ) {
    self.text = text
    self.count = count
    self.lastSecondsAgo = lastSecondsAgo
    self.bandBonus = bandBonus
    self.raised = raised
  }
}

/// What shadow mode would have done.
public struct ShadowReport: Codable, Hashable, Sendable {
  /// `would_have_freed`.
  public var code = "would_have_freed"
  public var text: String
  public var suspensions: Int
  public var hibernations: Int
  public var terminations: Int
  /// Bytes, each time counted again.
  public var freed: Int64
  /// How often it would have been waited for, and for how long in all.
  public var wakes: Int
  public var wakeSeconds: Double

  public init(
    text: String, suspensions: Int, hibernations: Int, terminations: Int, freed: Int64, wakes: Int,
    wakeSeconds: Double
  ) {
    self.text = text
    self.suspensions = suspensions
    self.hibernations = hibernations
    self.terminations = terminations
    self.freed = freed
    self.wakes = wakes
    self.wakeSeconds = wakeSeconds
  }
}

/// How a worker's program ended.
public struct ExitStatusReport: Codable, Hashable, Sendable {
  /// `exited`, `signaled`, `out_of_memory` or `end_unknown`.
  public var code: String
  public var text: String
  /// Where it exited; and where a signal ended it.
  public var status: Int32?
  public var signal: Int32?

  public init(code: String, text: String, status: Int32? = nil, signal: Int32? = nil) {
    self.code = code
    self.text = text
    self.status = status
    self.signal = signal
  }
}

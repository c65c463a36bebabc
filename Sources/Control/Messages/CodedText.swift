/// A text with its code. Programs use the code, in snake_case, which never changes its meaning.
/// People read the text, which any version may word differently.
public struct CodedText: Codable, Hashable, Sendable {
  public var code: String
  public var text: String

  public init(_ code: String, _ text: String) {
    self.code = code
    self.text = text
  }

  /// The code of a text without a code, from a peer or a file of an earlier version.
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

/// The measured effect of a request to free memory. Sizes are in bytes.
public struct ShedReport: Codable, Hashable, Sendable {
  /// The code is `gave_back` or `gave_nothing_back`.
  public var code: String
  public var text: String
  /// The reason for the request: `warning` or `background`.
  public var occasion: String
  /// True if the worker has answered in time.
  public var isAnswered: Bool
  /// The footprint before the request.
  public var before: Int64
  /// The footprint after the request.
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

/// A worker was suspended or hibernated too early, and the effects of that. Times are in seconds.
public struct EarlyWakeReport: Codable, Hashable, Sendable {
  /// The code is always `put_away_too_early`.
  public var code = "put_away_too_early"
  public var text: String
  /// The number of early wakes.
  public var count: Int
  public var lastSecondsAgo: Double
  /// The number by which its band is higher because of early wakes.
  public var bandBonus: Int
  /// Its idle times that were raised.
  public var raised: [RaisedIdle]

  public struct RaisedIdle: Codable, Hashable, Sendable {
    /// The key of the policy: `background.suspend_after` or `hibernate.after`.
    public var key: String
    /// The idle time that the policy sets.
    public var declaredSeconds: Double
    /// The idle time that applies now.
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

/// The steps that shadow mode would have taken.
public struct ShadowReport: Codable, Hashable, Sendable {
  /// The code is always `would_have_freed`.
  public var code = "would_have_freed"
  public var text: String
  public var suspensions: Int
  public var hibernations: Int
  public var terminations: Int
  /// The bytes that would have been freed. The memory of a worker counts each time.
  public var freed: Int64
  /// The number of wakes for which a client would have waited.
  public var wakes: Int
  /// The total time of these waits.
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
  /// The code is `exited`, `signaled`, `out_of_memory` or `end_unknown`.
  public var code: String
  public var text: String
  /// The exit status, if it exited.
  public var status: Int32?
  /// The signal's number, if a signal ended it.
  public var signal: Int32?

  public init(code: String, text: String, status: Int32? = nil, signal: Int32? = nil) {
    self.code = code
    self.text = text
    self.status = status
    self.signal = signal
  }
}

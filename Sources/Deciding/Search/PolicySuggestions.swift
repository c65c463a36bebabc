import Simulation

/// `policy suggest`: what the own history says about changes of the policy.
public struct PolicySuggestions: Codable, Sendable {
  /// `changes`: some would have been better; `no_change`: none would.
  public var code: String
  public var text: String
  /// The name of the policy that is changed.
  public var policy: String
  /// The workers whose policy is changed; nil: all.
  public var only: [String]?
  public var history: FleetHistory
  public var hours: Double
  /// The numbers are those of the last hours of the history.
  public var evaluatedHours: Double
  public var workers: Int
  public var uses: Int
  /// How many changes were tried.
  public var tried: Int
  /// The byte-hours that a second of waiting is worth.
  public var waitWorth: Double
  public var now: PolicyNumbers
  /// The best trade first; three at most.
  public var suggestions: [Suggestion]
  /// The shipped policies over the same history; nil: only some workers' policy is changed.
  public var policies: [OtherPolicy]?

  /// The best of those that would have been clearly better.
  public var bestPolicy: OtherPolicy? {
    policies?.filter(\.isBetter).max { $0.gain < $1.gain }
  }

  public struct OtherPolicy: Codable, Sendable {
    public var name: String
    public var numbers: PolicyNumbers
    /// Clearly better than the present policy, and it ends no more workers.
    public var isBetter: Bool
    /// Byte-hours a day that it saves, waiting included; negative: it costs more.
    public var gain: Double
    /// To paste into dormouse.yaml.
    public var yaml: String
  }

  public struct Suggestion: Codable, Sendable {
    /// `best`, `saves_most` or `waits_least`.
    public var code: String
    public var changes: [Change]
    /// To paste into dormouse.yaml.
    public var yaml: [String]
    /// To try it: options of `replay` and `simulate`.
    public var set: [String]
    public var numbers: PolicyNumbers
    /// The workers for which it changes most.
    public var workers: [WorkerDifference]
  }

  public struct Change: Codable, Sendable {
    public var key: String
    public var from: String
    public var to: String
    /// What the change means for workers.
    public var text: String?
  }

  /// For a day; negative: less than now.
  public struct WorkerDifference: Codable, Sendable {
    public var worker: String
    public var byteHours: Double
    public var wakes: Double
    public var waitSeconds: Double
  }
}

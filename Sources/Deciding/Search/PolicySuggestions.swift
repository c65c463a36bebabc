import Simulation

/// The result of `policy suggest`: what the recorded history says about changes of the policy.
public struct PolicySuggestions: Codable, Sendable {
  /// The result for programs. `changes`: some would have been better; `no_change`: none would.
  public var code: String
  /// The result for people, in one sentence.
  public var text: String
  /// The name of the policy that is changed.
  public var policy: String
  /// The workers whose policy is changed. `nil`: all.
  public var only: [String]?
  /// The history, with what was recorded in it.
  public var history: FleetHistory
  /// The length of the history.
  public var hours: Double
  /// The numbers are those of this many hours at the end of the history.
  public var evaluatedHours: Double
  /// The number of workers in the history.
  public var workers: Int
  /// The number of uses in the history.
  public var uses: Int
  /// How many changes were tried.
  public var tried: Int
  /// The byte-hours that a second of waiting is worth.
  public var waitWorth: Double
  /// The numbers of the present policy.
  public var now: PolicyNumbers
  /// Three changes at most, the best trade first.
  public var suggestions: [Suggestion]
  /// The shipped policies over the same history. `nil`: only some workers' policy is changed.
  public var policies: [OtherPolicy]?

  /// The best of the shipped policies that would have been clearly better. `nil`: none would.
  public var bestPolicy: OtherPolicy? {
    policies?.filter(\.isBetter).max { $0.gain < $1.gain }
  }

  /// A shipped policy, compared with the present one.
  public struct OtherPolicy: Codable, Sendable {
    public var name: String
    public var numbers: PolicyNumbers
    /// Whether it is clearly better than the present policy, and terminates no more workers.
    public var isBetter: Bool
    /// The byte-hours a day that it saves, waiting included. Negative: it costs more.
    public var gain: Double
    /// The line for dormouse.yaml.
    public var yaml: String
  }

  /// A change of the policy, with its numbers.
  public struct Suggestion: Codable, Sendable {
    /// The kind of suggestion: `best`, `saves_most` or `waits_least`.
    public var code: String
    public var changes: [Change]
    /// The lines for dormouse.yaml.
    public var yaml: [String]
    /// The options of `replay` and `simulate` that try the suggestion.
    public var set: [String]
    public var numbers: PolicyNumbers
    /// The workers for which it changes most.
    public var workers: [WorkerDifference]
  }

  /// A key whose value changes.
  public struct Change: Codable, Sendable {
    public var key: String
    /// The present value.
    public var from: String
    /// The suggested value.
    public var to: String
    /// What the change means for workers. `nil`: there is no text for it.
    public var text: String?
  }

  /// The difference for one worker and day. Negative: less than now.
  public struct WorkerDifference: Codable, Sendable {
    public var worker: String
    public var byteHours: Double
    public var wakes: Double
    public var waitSeconds: Double
  }
}

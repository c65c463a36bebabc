/// An entry of `adopt:`. Running processes that match it become workers.
public struct AdoptionRule: Hashable, Sendable {
  /// What the policy does with the rule's workers.
  public enum Mode: String, Hashable, Sendable, CaseIterable {
    /// Decisions about the workers are logged, not applied.
    case shadow
    /// The policy applies to the workers.
    case manage
  }

  /// The rule's name, with which its workers' names begin: `tsserver-4711`.
  public var name: String
  /// The patterns of the processes to adopt. A process has to match one of them.
  public var matches: [ProcessPattern]
  /// The patterns of the exceptions. A process must match none of them.
  public var exceptions: [ProcessPattern] = []
  /// What the policy does with the rule's workers. Shadow mode by default.
  public var mode = Mode.shadow
  /// Whether its workers may be terminated for lack of memory.
  public var mayTerminate = false
  /// Whether the rule also adopts programs that a shell on a terminal watches, or that read from a
  /// terminal.
  public var includesTerminals = false
  /// The largest number of workers that the rule has at a time.
  public var limit = AdoptionRule.defaultLimit
  /// The importance of its workers, 0–100.
  public var importance = 0
  /// The policy for its workers, before `mode` is applied.
  public var policy: LifecyclePolicy
  /// The file of rules that the rule comes from. `nil`: the configuration.
  public var set: String?

  /// The default of `limit`.
  public static let defaultLimit = 50
  /// The longest name of a rule, in bytes. The worker's name has the pid after it, and at most 64
  /// bytes.
  public static let longestName = 52

  public init(name: String, matches: [ProcessPattern], policy: LifecyclePolicy = LifecyclePolicy())
  {
    self.name = name
    self.matches = matches
    self.policy = policy
  }

  /// The name of the worker that is adopted with this pid.
  public func workerName(of pid: Int32) -> String { "\(name)-\(pid)" }

  /// The policy of its workers. It is in shadow mode if the rule is, whatever the machine's mode
  /// is.
  public var effectivePolicy: LifecyclePolicy {
    var policy = policy
    if mode == .shadow { policy.mode = .shadow }
    return policy
  }

  /// A text of all patterns. Two rules with the same text choose the same processes.
  public var choice: String {
    matches.map(\.text).joined(separator: " or ")
      + (exceptions.isEmpty ? "" : " except " + exceptions.map(\.text).joined(separator: " or "))
      + (includesTerminals ? " terminal" : "")
  }
}

extension [AdoptionRule] {
  /// The policy for a worker that an earlier daemon has adopted: that of its rule, or the machine's
  /// if it was adopted without a rule. A worker whose rule was removed is in shadow mode.
  public func policy(ofRule name: String?, _ machine: LifecyclePolicy) -> LifecyclePolicy {
    guard let name else { return machine }
    if let rule = first(where: { $0.name == name }) { return rule.effectivePolicy }
    var policy = machine
    policy.mode = .shadow
    return policy
  }
}

/// What has to be true of a process. All keys that are given have to match. If a key has several
/// values, one of them has to match.
public struct ProcessPattern: Hashable, Sendable {
  /// The whole command line, its arguments joined by blanks.
  public var command: [Glob] = []
  /// The path of its program.
  public var executable: [Glob] = []
  /// The kernel's name for it (`comm`), at most 15 bytes.
  public var name: [Glob] = []
  /// Its path in the cgroup2 tree.
  public var cgroup: [Glob] = []
  /// The innermost service or scope of that path.
  public var unit: [Glob] = []
  /// The user that the process runs as.
  public var user: User?
  /// The least age of the process.
  public var olderThan: Duration?
  /// The least footprint of the process.
  public var minFootprint: ByteCount?

  /// A user, by number or name.
  public enum User: Hashable, Sendable {
    /// The user that the daemon runs as.
    case me
    case number(UInt32)
    case name(String)

    /// Reads `me`, a user's number or a user's name.
    public init(_ text: String) {
      self = text == "me" ? .me : UInt32(text).map { .number($0) } ?? .name(text)
    }

    var text: String {
      switch self {
      case .me: "me"
      case .number(let number): "\(number)"
      case .name(let name): name
      }
    }
  }

  public init() {}

  var text: String {
    let globs = [
      ("command", command), ("exe", executable), ("name", name), ("cgroup", cgroup), ("unit", unit),
    ]
    var parts = globs.filter { !$0.1.isEmpty }.map { key, globs in
      "\(key)=" + globs.map { "\"\($0.pattern)\"" }.joined(separator: "|")
    }
    if let user { parts.append("user=\(user.text)") }
    if let olderThan { parts.append("older_than=\(olderThan.wholeNanoseconds / 1_000_000)ms") }
    if let minFootprint { parts.append("min_footprint=\(minFootprint.bytes)") }
    return "{" + parts.joined(separator: " ") + "}"
  }
}

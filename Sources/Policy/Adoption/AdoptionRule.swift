/// An entry of `adopt:`: processes that appear and match it become workers.
public struct AdoptionRule: Hashable, Sendable {
  public enum Mode: String, Hashable, Sendable, CaseIterable {
    /// Decisions are logged, not applied.
    case shadow
    case manage
  }

  /// A worker is called after it: `tsserver-4711`.
  public var name: String
  /// Each of them is enough.
  public var matches: [ProcessPattern]
  /// None of them may match.
  public var exceptions: [ProcessPattern] = []
  public var mode = Mode.shadow
  /// Its workers may be terminated when memory runs out.
  public var mayTerminate = false
  /// Also a program that a shell on a terminal shows as stopped.
  public var includesTerminals = false
  /// The most workers that it has at a time.
  public var limit = AdoptionRule.defaultLimit
  public var importance = 0
  /// The policy for its workers.
  public var policy: LifecyclePolicy
  /// The file of rules that it comes from; nil: the configuration.
  public var set: String?

  public static let defaultLimit = 50
  /// The worker's name has the pid after it, and at most 64 characters.
  public static let longestName = 52

  public init(name: String, matches: [ProcessPattern], policy: LifecyclePolicy = LifecyclePolicy())
  {
    self.name = name
    self.matches = matches
    self.policy = policy
  }

  public func workerName(of pid: Int32) -> String { "\(name)-\(pid)" }

  /// The policy of its workers: in shadow mode whatever the machine's mode is.
  public var effectivePolicy: LifecyclePolicy {
    var policy = policy
    if mode == .shadow { policy.mode = .shadow }
    return policy
  }

  /// Two rules with the same text choose the same processes.
  public var choice: String {
    matches.map(\.text).joined(separator: " or ")
      + (exceptions.isEmpty ? "" : " except " + exceptions.map(\.text).joined(separator: " or "))
      + (includesTerminals ? " terminal" : "")
  }
}

extension [AdoptionRule] {
  /// For a worker that an earlier daemon has adopted: that of its rule; without one, the machine's. Nothing is decided
  /// for a worker whose rule was removed.
  public func policy(ofRule name: String?, _ machine: LifecyclePolicy) -> LifecyclePolicy {
    guard let name else { return machine }
    if let rule = first(where: { $0.name == name }) { return rule.effectivePolicy }
    var policy = machine
    policy.mode = .shadow
    return policy
  }
}

/// What has to be true of a process. All keys that are given have to fit; of several values of a key, one.
public struct ProcessPattern: Hashable, Sendable {
  /// The whole command line, its words joined by blanks.
  public var command: [Glob] = []
  /// The path of its program.
  public var executable: [Glob] = []
  /// The kernel's name for it, at most 15 bytes (`comm`).
  public var name: [Glob] = []
  /// Its path in the cgroup2 tree.
  public var cgroup: [Glob] = []
  /// The innermost service or scope of that path.
  public var unit: [Glob] = []
  public var user: User?
  public var olderThan: Duration?
  public var minFootprint: ByteCount?

  public enum User: Hashable, Sendable {
    /// The daemon's own.
    case me
    case number(UInt32)
    case name(String)

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

  public var isEmpty: Bool { self == ProcessPattern() }

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

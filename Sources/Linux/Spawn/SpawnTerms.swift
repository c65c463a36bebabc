import CLinux

/// How a new process differs from this one, except for its files; see `clinux_terms`.
public struct SpawnTerms: Hashable, Sendable {
  /// The user and groups of a process. Only root can set them.
  public struct Identity: Hashable, Sendable {
    public var user: UInt32
    public var group: UInt32
    /// All supplementary groups.
    public var groups: [UInt32]
  }

  /// A limit of setrlimit(2), in its units. `UInt64.max` means unlimited.
  public struct Limit: Hashable, Sendable {
    /// The limit's name for messages.
    public var name: String
    /// The number of the resource (RLIMIT_…).
    public var resource: Int32
    public var soft: UInt64
    public var hard: UInt64

    public init(name: String, resource: Int32, soft: UInt64, hard: UInt64) {
      self.name = name
      self.resource = resource
      self.soft = soft
      self.hard = hard
    }
  }

  /// A descriptor of this process that gets this number in the new one.
  public struct Placed: Hashable, Sendable {
    public var descriptor: Int32
    public var number: Int32

    public init(_ descriptor: Int32, at number: Int32) {
      self.descriptor = descriptor
      self.number = number
    }
  }

  public var identity: Identity?
  public var limits: [Limit] = []
  /// The umask: permission bits that new files don't get.
  public var umask: UInt32?
  /// Descriptors with fixed numbers. The numbers are different, and 3 or higher. There may be no
  /// more than `maxPlaced`.
  public var placed: [Placed] = []
  /// The names of variables that contain the process's own pid, which isn't known before the
  /// process exists (`LISTEN_PID`). There may be no more than `maxPidVariables`.
  public var pidVariables: [String] = []
  /// True if the process gets a session keyring of its own (keyctl(2)), and none of the keys in
  /// this process's keyring.
  public var newKeyring = false

  public static let maxPlaced = Int(CLINUX_MAX_PLACED)
  public static let maxPidVariables = Int(CLINUX_MAX_PID_VARIABLES)

  public init() {}
}

/// Passes the terms as C structures to `body`; nil if the process differs in nothing.
func withTerms<Result>(
  _ terms: SpawnTerms?, pidDigits: [UnsafeMutablePointer<CChar>?],
  _ body: (UnsafePointer<clinux_terms>?) -> Result
) -> Result {
  guard let terms, terms != SpawnTerms() else { return body(nil) }
  let limits = terms.limits.map {
    clinux_limit(resource: $0.resource, soft: $0.soft, hard: $0.hard)
  }
  let placed = terms.placed.prefix(SpawnTerms.maxPlaced).map {
    clinux_placed(descriptor: $0.descriptor, number: $0.number)
  }
  let groups = terms.identity?.groups ?? []
  let numbers = Array(pidDigits.prefix(SpawnTerms.maxPidVariables))
  return limits.withUnsafeBufferPointer { limits in
    placed.withUnsafeBufferPointer { placed in
      groups.withUnsafeBufferPointer { groups in
        numbers.withUnsafeBufferPointer { numbers in
          var prepared = clinux_terms(
            changes_identity: terms.identity == nil ? 0 : 1, user: terms.identity?.user ?? 0,
            group: terms.identity?.group ?? 0, groups: groups.baseAddress,
            group_count: Int32(groups.count), limits: limits.baseAddress,
            limit_count: Int32(limits.count), placed: placed.baseAddress,
            placed_count: Int32(placed.count), umask: terms.umask.map { Int32($0) } ?? -1,
            new_keyring: terms.newKeyring ? 1 : 0, pid_digits: numbers.baseAddress,
            pid_digits_count: Int32(numbers.count))
          return body(&prepared)
        }
      }
    }
  }
}

import Policy

/// The keys of `limits`.
enum LimitKeys {
  @KeyList<ResourceLimits> static var all: [Key<ResourceLimits>] {
    ResourceLimits.Resource.allCases.map(resource)
    Key<ResourceLimits>(
      "memory", \.memory, as: .size.notZero,
      about: "memory of all of the worker's processes together (`memory.max` of its cgroup)")
    footprint
    Key<ResourceLimits>(
      "oom_score_adj", \.oomScore, as: .integer(ResourceLimits.oomScores),
      about: """
        how readily the kernel's OOM killer chooses the worker, -1000 to 1000; at -1000 never. \
        Default: 0, or the daemon's value if that is higher
        """)
  }

  /// A key with a value such as `65536`, `unlimited` or `{ soft: 1024, hard: 65536 }`.
  private static func resource(_ resource: ResourceLimits.Resource) -> Key<ResourceLimits> {
    typealias Limit = ResourceLimits.Limit
    let name = resource.rawValue
    let amount = amount(resource.unit)
    return Key<ResourceLimits>(
      name, \.resources[resource],
      short: amount.map({ Limit(soft: $0, hard: $0) }, back: \.hard),
      isShort: { $0.soft == $0.hard }, over: Limit(soft: 0, hard: nil), about: resource.about,
      check: { inner, limit in
        if ["soft", "hard"].contains(where: { inner.position(ofKey: $0) == nil }) {
          inner.sink.error(
            at: inner.start, "`\(name)` needs `soft` and `hard`, or one value for both",
            suggestion: "write `{ soft: …, hard: … }`")
        } else if limit.soft ?? .max > limit.hard ?? .max {
          inner.sink.error(
            at: inner.positions[inner.path(of: "soft")],
            "the `soft` limit of `\(name)` is over its `hard`")
        }
      }
    ) {
      Key<Limit>(
        "soft", \.soft, as: amount,
        about: "the limit in effect. The worker may raise it up to `hard`")
      Key<Limit>(
        "hard", \.hard, as: amount, about: "the most to which the worker may raise its limit")
    }
  }

  private static func amount(_ unit: ResourceLimits.Resource.Unit) -> Converter<UInt64?> {
    switch unit {
    case .count:
      return Converter<Int>.integer(0 ... .max)
        .map({ UInt64($0) }, back: { Int(clamping: $0) }).or("unlimited")
    case .bytes:
      return Converter<ByteCount>.size
        .map({ UInt64($0.bytes) }, back: { ByteCount(Int64(clamping: $0)) }).or("unlimited")
    case .seconds:
      return Converter<Duration>.duration
        .map({ UInt64($0.wholeNanoseconds / 1_000_000_000) }, back: { .seconds($0) })
        .or("unlimited")
    }
  }

  private static var footprint: Key<ResourceLimits> {
    let size = Converter<ByteCount>.size.notZero
    return Key<ResourceLimits>(
      "footprint", \.footprint,
      short: size.map({ FootprintLimits(restart: $0) }, back: { $0.restart ?? .zero }),
      isShort: { $0 == $0.restart.map { FootprintLimits(restart: $0) } }, over: FootprintLimits(),
      about: """
        what happens to the worker by its measured footprint, without a memory controller. One \
        size is short for `restart`
        """, check: checkFootprint
    ) {
      Key<FootprintLimits>(
        "warn", \.warn, as: size, about: "over this the worker is asked to free memory")
      Key<FootprintLimits>(
        "hibernate", \.hibernate, as: size,
        about: "over this it is hibernated as soon as it isn't in use")
      Key<FootprintLimits>(
        "restart", \.restart, as: size,
        about: "over this it is ended in an orderly way and started again, when it isn't in use")
      Key<FootprintLimits>(
        "sustained_for", \.sustainedFor, as: .duration,
        about: "how long the footprint must be over a limit")
    }.called("size, or a mapping")
  }

  private static func checkFootprint(_ inner: MappingReader, _ limits: FootprintLimits) {
    if limits.isEmpty, inner.order.allSatisfy({ $0 == "sustained_for" }) {
      inner.sink.error(
        at: inner.start, "`footprint` needs `warn`, `hibernate` or `restart`",
        suggestion: "write `footprint: { warn: 300MB, restart: 1GB }`")
    }
    // A later step with a smaller limit would be reached first.
    let given = FootprintLimits.Step.allCases.filter { limits[$0] != nil }
    for (earlier, later) in zip(given, given.dropFirst()) {
      guard let low = limits[earlier], let high = limits[later], high < low else { continue }
      inner.sink.error(
        at: inner.positions[inner.path(of: later.rawValue)],
        "`\(later.rawValue)` (\(high.policyText)) is under "
          + "`\(earlier.rawValue)` (\(low.policyText))",
        suggestion: "the order is `warn` ≤ `hibernate` ≤ `restart`")
    }
  }
}

extension ResourceLimits.Resource {
  fileprivate var about: String {
    switch self {
    case .nofile: "open files of one process"
    case .nproc: "processes and threads of the worker's user"
    case .core: "the size of a core dump"
    case .memlock: "locked memory of one process"
    case .stack: "the stack of a process's main thread"
    case .data: "data segment and heap of one process"
    case .fsize: "the size of a file that a process writes"
    case .cpu: "processor time of one process"
    case .sigpending: "queued signals of the worker's user"
    case .msgqueue: "POSIX message queues of the worker's user"
    case .addressSpace: "address space of one process"
    }
  }
}

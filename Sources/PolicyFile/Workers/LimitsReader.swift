import Policy
import YAML

/// Reads `limits:`.
struct LimitsReader {
  var reader: MappingReader

  func read() -> ResourceLimits {
    var limits = ResourceLimits()
    for resource in ResourceLimits.Resource.allCases {
      if let limit = limit(resource) { limits.resources[resource] = limit }
    }
    limits.memory = reader.read("memory", as: .size.notZero)
    limits.footprint = FootprintLimitsReader(reader: reader).read("footprint")
    limits.oomScore = reader.read("oom_score_adj", as: .integer(ResourceLimits.oomScores))
    return limits
  }

  /// `65536`, `unlimited`, or `{ soft: 1024, hard: 65536 }`.
  private func limit(_ resource: ResourceLimits.Resource) -> ResourceLimits.Limit? {
    let key = resource.rawValue
    let amount = Self.amount(resource.unit)
    if let shape = reader.shape {
      let both = MappingShape()
      both.add("soft", amount.shape)
      both.add("hard", amount.shape)
      shape.add(key, .either([amount.shape, .mapping(both)]))
      return nil
    }
    guard let node = reader.node(key) else { return nil }
    guard case .mapping = node, let inner = reader.reader(of: node, called: key) else {
      let value = reader.convert(node, called: key, as: amount)
      return value.map { ResourceLimits.Limit(soft: $0, hard: $0) }
    }
    let soft = inner.read("soft", as: amount)
    let hard = inner.read("hard", as: amount)
    inner.finish()
    for name in ["soft", "hard"] where inner.position(ofKey: name) == nil {
      inner.sink.error(
        at: inner.own, "`\(key)` needs `soft` and `hard`, or one value for both",
        suggestion: "write `{ soft: …, hard: … }`")
      return nil
    }
    guard let soft, let hard else { return nil }
    if soft ?? .max > hard ?? .max {
      inner.sink.error(
        at: inner.places[inner.path(of: "soft")], "the `soft` limit of `\(key)` is over its `hard`")
    }
    return ResourceLimits.Limit(soft: soft, hard: hard)
  }

  private static func amount(_ unit: ResourceLimits.Resource.Unit) -> Converter<UInt64?> {
    let converter: Converter<UInt64?> =
      switch unit {
      case .count: Converter<Int>.integer(0 ... .max).map { UInt64($0) }
      case .bytes: Converter<ByteCount>.size.map { UInt64($0.bytes) }
      case .seconds:
        Converter<Duration>.duration.map { UInt64($0.wholeNanoseconds / 1_000_000_000) }
      }
    return converter.orWord("unlimited", nil)
  }
}

import Policy
import YAML

/// Reads `limits.footprint`: a mapping, or one size, which is short for `restart`.
struct FootprintLimitsReader {
  var reader: MappingReader

  /// `nil`: it isn't there, or wrong.
  func read(_ key: String) -> FootprintLimits? {
    let size = Converter<ByteCount>.size.notZero
    if let shape = reader.shape {
      let inner = MappingShape()
      _ = details(MappingReader(exploring: inner, path: reader.path(of: key)))
      shape.add(key, .either([size.shape, .mapping(inner)]))
      return nil
    }
    guard let node = reader.node(key) else { return nil }
    guard case .mapping = node, let inner = reader.reader(of: node, called: key) else {
      return reader.convert(node, called: key, as: size).map { FootprintLimits(restart: $0) }
    }
    let limits = details(inner)
    inner.finish()
    if limits.isEmpty, inner.order.allSatisfy({ $0 == "sustained_for" }) {
      inner.sink.error(
        at: inner.own, "`\(key)` needs `warn`, `hibernate` or `restart`",
        suggestion: "write `\(key): { warn: 300MB, restart: 1GB }`")
      return nil
    }
    checkOrder(of: limits, inner)
    return limits
  }

  private func details(_ inner: MappingReader) -> FootprintLimits {
    var limits = FootprintLimits()
    limits.warn = inner.read("warn", as: .size.notZero)
    limits.hibernate = inner.read("hibernate", as: .size.notZero)
    limits.restart = inner.read("restart", as: .size.notZero)
    inner.read("sustained_for", into: &limits.sustainedFor, as: .duration)
    return limits
  }

  /// A later step with a smaller limit would come first.
  private func checkOrder(of limits: FootprintLimits, _ inner: MappingReader) {
    let given = FootprintLimits.Step.allCases.filter { limits[$0] != nil }
    for (earlier, later) in zip(given, given.dropFirst()) {
      guard let low = limits[earlier], let high = limits[later], high < low else { continue }
      inner.sink.error(
        at: inner.places[inner.path(of: later.rawValue)],
        "`\(later.rawValue)` (\(high.policyText)) is under `\(earlier.rawValue)` (\(low.policyText))",
        suggestion: "the order is `warn` ≤ `hibernate` ≤ `restart`")
    }
  }
}

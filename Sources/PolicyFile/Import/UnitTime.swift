import Policy

/// Reads times such as `5` or `1min 30s` (systemd.time(7)).
enum UnitTime {
  private static let units: [String: Double] = [
    "us": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3, "": 1, "s": 1, "sec": 1, "second": 1,
    "seconds": 1, "m": 60, "min": 60, "minute": 60, "minutes": 60, "h": 3600, "hr": 3600,
    "hour": 3600, "hours": 3600, "d": 86400, "day": 86400, "days": 86400, "w": 604800,
    "week": 604800, "weeks": 604800,
  ]

  /// Reads a time in whole seconds, rounded up, at most a week. nil: it is missing, endless, or not
  /// a time.
  static func seconds(_ text: String?) -> Int? {
    guard let text, text != "infinity" else { return nil }
    var sum = 0.0
    var remainder = text.drop { $0.isWhitespace }
    if remainder.isEmpty { return nil }
    while !remainder.isEmpty {
      let digits = remainder.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
      remainder = remainder.dropFirst(digits.count).drop { $0 == " " }
      let unit = remainder.prefix { $0.isLetter }
      remainder = remainder.dropFirst(unit.count).drop { $0.isWhitespace }
      guard let number = Double(digits), let factor = units[String(unit)] else { return nil }
      sum += number * factor
    }
    return sum.isFinite ? Int(min(sum, 604_800).rounded(.up)) : nil
  }
}

/// Reads limits such as `LimitNOFILE=65536`, `LimitCORE=infinity` or `MemoryMax=1G`.
enum UnitLimit {
  /// Returns the limit as Dormouse writes it. nil: it can't be written.
  static func text(_ text: String, _ unit: ResourceLimits.Resource.Unit) -> String? {
    if text == "infinity" { return "unlimited" }
    switch unit {
    case .count: return UInt64(text).map { "\($0)" }
    case .seconds: return UnitTime.seconds(text).map { "\($0)s" }
    case .bytes:
      let digits = text.prefix { $0.isASCII && $0.isNumber }
      guard let number = Int64(digits) else { return nil }
      let shifts: [String: Int64] = ["": 0, "B": 0, "K": 10, "M": 20, "G": 30, "T": 40]
      guard let shift = shifts[text.dropFirst(digits.count).uppercased()],
        number < 1 << (62 - shift)
      else { return nil }
      return ByteCount(number << shift).policyText
    }
  }
}

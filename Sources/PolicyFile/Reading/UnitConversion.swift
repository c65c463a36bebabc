import Policy

// These converters read values with units. A wrong spelling is refused even if it can only mean one
// thing, and the right one is suggested: more people read a policy than write it.

extension Converter where Value == ByteCount {
  /// A size such as `16MB` or `1.5GB`, in powers of 1024.
  static var size: Converter {
    .scalar(
      "a size such as `16MB`",
      shape: .matching("\(number)(B|KB|MB|GB)$", example: "16MB").called("size"),
      write: { .plain($0.policyText) }
    ) { text in
      guard let quantity = Quantity(text) else { return .failure(.wrongKind) }
      guard !quantity.negative else { return .failure(.negative) }
      guard let scale = sizeUnits.first(where: { $0.name == quantity.unit })?.bytes else {
        return .failure(sizeProblem(quantity))
      }
      guard let bytes = quantity.scaled(by: scale) else {
        return .problem("is too big: 64 bits hold at most `8589934591GB`")
      }
      return .success(ByteCount(bytes))
    }
  }

  private static func sizeProblem(_ quantity: Quantity) -> Problem {
    switch quantity.looseUnit {
    case "":
      return Problem(message: "needs a unit", suggestion: "write `\(quantity.number)MB`")
    case "b", "byte", "bytes": return .write(quantity.number + "B")
    case "k", "kb", "kib": return .write(quantity.number + "KB")
    case "m", "mb", "mib": return .write(quantity.number + "MB")
    case "g", "gb", "gib": return .write(quantity.number + "GB")
    case "t", "tb", "tib":
      guard quantity.fraction.isEmpty, quantity.whole < 1 << 20 else { fallthrough }
      return .write("\(quantity.whole * 1024)GB")
    default: return Problem(suggestion: "the units are B, KB, MB and GB")
    }
  }
}

/// The pattern of a number at the beginning of a text, as `Quantity` reads it.
private let number = #"^[0-9]+(\.[0-9]+)?"#

let sizeUnits: [(name: String, bytes: Int64)] =
  [("B", 1), ("KB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30)]

/// The units of durations, in milliseconds.
let durationUnits: [String: Int64] = ["ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000]

/// The longest duration, in milliseconds.
let maxMilliseconds: Int64 = 87_600 * 3_600_000

extension Converter where Value == Duration {
  /// A duration such as `500ms`, `1.5s`, `10m` or `1h`.
  static var duration: Converter {
    .scalar(
      "a duration such as `10s`",
      shape: .matching("\(number)(ms|s|m|h)$", example: "10s").called("duration"),
      write: { .plain($0.policyText) }
    ) { text in
      guard let quantity = Quantity(text) else { return .failure(.wrongKind) }
      guard !quantity.negative else { return .failure(.negative) }
      guard let scale = durationUnits[quantity.unit] else {
        return .failure(durationProblem(quantity, text))
      }
      guard let count = quantity.scaled(by: scale), count <= maxMilliseconds else {
        return .failure(.tooLong)
      }
      // A policy is written with milliseconds as its finest unit.
      if quantity.whole == 0, count == 0, quantity.fraction.contains(where: { $0 != 0 }) {
        return .problem("is finer than `1ms`")
      }
      return .success(.milliseconds(count))
    }
  }

  private static func durationProblem(_ quantity: Quantity, _ text: String) -> Problem {
    switch quantity.looseUnit {
    case "": return Problem(message: "needs a unit", suggestion: "write `\(quantity.number)s`")
    case "ms", "msec", "msecs", "millis", "millisecond", "milliseconds":
      return .write(quantity.number + "ms")
    case "s", "sec", "secs", "second", "seconds": return .write(quantity.number + "s")
    case "m", "min", "mins", "minute", "minutes": return .write(quantity.number + "m")
    case "h", "hr", "hrs", "hour", "hours": return .write(quantity.number + "h")
    case "d", "day", "days":
      guard quantity.fraction.isEmpty, quantity.whole <= 3_650 else { fallthrough }
      return .write("\(quantity.whole * 24)h")
    default:
      if let sum = compound(text) { return .write(sum.policyText) }
      return Problem(suggestion: "the units are ms, s, m and h")
    }
  }

  /// Reads `1m30s`, which a policy writes as `90s`.
  private static func compound(_ text: String) -> Duration? {
    var remainder = text
    var sum: Int64 = 0
    while !remainder.isEmpty {
      guard let quantity = Quantity(remainder), !quantity.negative else { return nil }
      let unit = quantity.unit.prefix { $0.isLetter }
      guard let scale = durationUnits[String(unit)],
        let count = quantity.scaled(by: scale), count <= maxMilliseconds, sum <= maxMilliseconds
      else { return nil }
      sum += count
      remainder = String(quantity.unit.dropFirst(unit.count))
    }
    return .milliseconds(sum)
  }
}

extension Converter where Value == Double {
  /// A percentage from `0%` to `100%`, with at most three decimals.
  static var percent: Converter {
    .scalar(
      "a percentage such as `5%`",
      shape: .matching("\(number)%$", example: "5%").called("percentage"),
      write: { .plain(percentText($0)) }
    ) { text in
      guard let quantity = Quantity(text) else { return .failure(.wrongKind) }
      guard !quantity.negative else { return .failure(.negative) }
      guard quantity.unit == "%" else {
        switch quantity.looseUnit {
        case "":
          return .problem("needs a unit", suggestion: "write `\(quantity.number)%`")
        case "%", "percent", "pct": return .failure(.write(quantity.number + "%"))
        default: return .failure(.wrongKind)
        }
      }
      guard let thousandths = quantity.scaled(by: 1_000), thousandths <= 100_000 else {
        return .problem("must be from `0%` to `100%`, not `\(shortened(text))`")
      }
      return .success(Double(thousandths) / 1_000)
    }
  }
}

extension Converter where Value == PressureCondition.Amount {
  /// A share of the whole, or a size.
  static var amount: Converter {
    Converter(
      expects: "a percentage such as `10%` or a size such as `512MB`",
      shape: .matching("\(number)(%|B|KB|MB|GB)$", example: "10%").called("percentage or size"),
      write: { .plain($0.policyText) }
    ) { node in
      guard let text = node.scalar?.string, let quantity = Quantity(text) else {
        return .failure(.wrongKind)
      }
      if quantity.looseUnit.isEmpty {
        return .problem(
          "needs a unit", suggestion: "write `\(quantity.number)%` or `\(quantity.number)MB`")
      }
      switch quantity.looseUnit {
      case "%", "percent", "pct":
        return Converter<Double>.percent.convert(node).map { .percent($0) }
      default:
        return Converter<ByteCount>.size.convert(node).map { .bytes($0) }
      }
    }
  }
}

extension Problem {
  static let negative = Problem(message: "can't be negative")
  static let tooLong = Problem(message: "is too long: at most `87600h`, ten years")
}

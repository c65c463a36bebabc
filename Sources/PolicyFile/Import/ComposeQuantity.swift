/// Reads the times and sizes of Docker's compose file.
enum ComposeQuantity {
  /// Reads a duration of Go, such as `1m30s`, in seconds. nil: it is none.
  static func seconds(_ text: String) -> Double? {
    let units: [(String, Double)] = [
      ("ms", 0.001), ("us", 0.000_001), ("h", 3600), ("m", 60), ("s", 1),
    ]
    var remainder = Substring(text)
    var sum = 0.0
    guard !remainder.isEmpty else { return nil }
    while !remainder.isEmpty {
      let digits = remainder.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
      remainder = remainder[digits.endIndex...]
      guard let value = Double(digits), value < 1_000_000,
        let unit = units.first(where: { remainder.hasPrefix($0.0) })
      else { return nil }
      sum += value * unit.1
      remainder = remainder.dropFirst(unit.0.count)
    }
    return sum
  }

  /// Reads a size such as `512M` or `1gb`, or a number of bytes. nil: it is none.
  static func size(_ text: String) -> String? {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard let value = Int64(digits), value > 0 else { return nil }
    switch text[digits.endIndex...].lowercased() {
    case "", "b": return "\(value)B"
    case "k", "kb": return "\(value)KB"
    case "m", "mb": return "\(value)MB"
    case "g", "gb": return "\(value)GB"
    default: return nil
    }
  }
}

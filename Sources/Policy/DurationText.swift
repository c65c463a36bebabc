extension Duration {
  /// The duration for people, with two units at most: `850 µs`, `14 ms`, `1.2 s`, `30 s`, `4 m 5
  /// s`, `3 d 4 h`. All screens and sentences use it; policies have `policyText`.
  public var text: String {
    let seconds = max(self.seconds, 0)
    if seconds == 0 { return "0 s" }
    if seconds < 0.000_995 { return Self.oneDecimal(seconds * 1e6, "µs") }
    if seconds < 0.9995 { return Self.oneDecimal(seconds * 1e3, "ms") }
    if seconds < 59.5 { return Self.oneDecimal(seconds, "s") }
    let whole = Int(seconds.rounded())
    let units = [(86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s")]
    for (size, name, smaller, smallerName) in units where whole >= size {
      let remainder = whole % size / smaller
      let first = "\(whole / size) \(name)"
      return remainder == 0 ? first : "\(first) \(remainder) \(smallerName)"
    }
    return "\(whole) s"
  }

  /// The value with one decimal, but none from 10 on, and never `.0`.
  private static func oneDecimal(_ value: Double, _ unit: String) -> String {
    let tenths = Int((value * 10).rounded())
    if tenths >= 100 || tenths % 10 == 0 { return "\(Int(value.rounded())) \(unit)" }
    return "\(tenths / 10).\(tenths % 10) \(unit)"
  }
}

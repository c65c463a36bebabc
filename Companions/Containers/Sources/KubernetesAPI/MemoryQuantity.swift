/// An amount of memory as the API writes it: `128Mi`, `1.5Gi`, `500M`, `128974848`, `1e9`.
public struct MemoryQuantity: Hashable, Sendable, CustomStringConvertible {
  /// The amount as it was written: a restored request reads as before.
  public let text: String
  public let bytes: Int64

  public var description: String { text }

  /// The result is nil if the text isn't an amount, is negative, or doesn't fit in 64 bits.
  public init?(_ text: String) {
    let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == "." || $0 == "+") }
    guard let factor = Self.factor(text.dropFirst(number.count)), let value = Double(number),
      value >= 0
    else { return nil }
    // The amount is rounded up, as the API does with fractions of a byte.
    let bytes = (value * factor).rounded(.up)
    guard bytes < 9e18 else { return nil }
    self.text = text
    self.bytes = Int64(bytes)
  }

  /// The amount in whole Mi, rounded up, and at least `floor`.
  public init(roundingUp bytes: Int64, floor: Int64) {
    let unit: Int64 = 1 << 20
    let bounded = max(min(bytes, Int64.max - unit), floor, 0)
    let count = (bounded + unit - 1) / unit
    text = "\(count)Mi"
    self.bytes = count * unit
  }

  private static func factor(_ suffix: Substring) -> Double? {
    if let factor = factors[suffix] { return factor }
    guard suffix.first == "e" || suffix.first == "E", let exponent = Int(suffix.dropFirst()),
      (-18...18).contains(exponent)
    else { return nil }
    return (0..<exponent.magnitude).reduce(1.0) { value, _ in
      exponent < 0 ? value / 10 : value * 10
    }
  }

  private static let factors: [Substring: Double] = [
    "": 1, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 1_024, "Mi": 1_048_576, "Gi": 1_073_741_824, "Ti": 1_099_511_627_776,
    "Pi": 1_125_899_906_842_624, "Ei": 1_152_921_504_606_846_976,
  ]
}

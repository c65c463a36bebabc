/// A number and the text that follows it, such as `1.5` and `GB`.
struct Quantity {
  var negative: Bool
  var whole: Int64
  /// The digits after the point.
  var fraction: [UInt8]
  var unit: String
  /// The number as it was written, without its sign.
  var number: String

  /// Reads a quantity. The result is `nil` if the text doesn't begin with a number. A number that
  /// is too large for 64 bits saturates.
  init?(_ text: String) {
    var remainder = Substring(text)
    negative = remainder.hasPrefix("-")
    if negative { remainder = remainder.dropFirst() }
    let digits = remainder.prefix { Self.isDigit($0) }
    guard !digits.isEmpty else { return nil }
    whole = Int64(digits) ?? .max
    remainder = remainder.dropFirst(digits.count)
    number = String(digits)
    fraction = []
    if remainder.hasPrefix(".") {
      let decimals = remainder.dropFirst().prefix { Self.isDigit($0) }
      guard !decimals.isEmpty else { return nil }
      fraction = decimals.utf8.map { $0 - UInt8(ascii: "0") }
      number += "." + decimals
      remainder = remainder.dropFirst(decimals.count + 1)
    }
    unit = String(remainder)
  }

  private static func isDigit(_ character: Character) -> Bool { ("0"..."9").contains(character) }

  /// Returns the number times `scale`, rounded to the nearest integer. `nil`: the result doesn't
  /// fit in 64 bits.
  func scaled(by scale: Int64) -> Int64? {
    let (product, overflow) = whole.multipliedReportingOverflow(by: scale)
    // No unit resolves more than 18 decimals.
    let fractionValue = fraction.prefix(18).reversed().reduce(0.0) { ($0 + Double($1)) / 10 }
    let (sum, carried) = product.addingReportingOverflow(
      Int64((fractionValue * Double(scale)).rounded()))
    return overflow || carried ? nil : sum
  }

  /// The unit in lower case, without the blanks around it.
  var looseUnit: String { SectionedFile.trimmed(Substring(unit.lowercased())) }
}

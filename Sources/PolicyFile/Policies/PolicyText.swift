import Policy

// These functions write values as in a policy file. They are exact: reading gives an equal value.

extension ByteCount {
  /// The size with the largest unit that gives a whole number: `16MB`, `1536MB`.
  package var policyText: String {
    for unit in sizeUnits.reversed() where bytes != 0 && bytes % unit.bytes == 0 {
      return "\(bytes / unit.bytes)\(unit.name)"
    }
    return "\(bytes)B"
  }
}

/// A percentage such as `5%` or `2.5%`, with at most three decimals, which is what readers accept.
func percentText(_ percent: Double) -> String {
  // A policy file gives values from 0 to 100 only. A value made in code may be any number.
  guard percent.isFinite, percent.magnitude < 1e12 else { return "0%" }
  let thousandths = Int64((percent * 1_000).rounded())
  let (whole, remainder) = thousandths.magnitude.quotientAndRemainder(dividingBy: 1_000)
  var decimals = String(String(remainder + 1_000).dropFirst())
  while decimals.hasSuffix("0") { decimals.removeLast() }
  return "\(thousandths < 0 ? "-" : "")\(whole)\(decimals.isEmpty ? "" : ".")\(decimals)%"
}

extension PressureCondition.Amount {
  var policyText: String {
    switch self {
    case .percent(let share): percentText(share)
    case .bytes(let count): count.policyText
    }
  }
}

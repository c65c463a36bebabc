import Policy

// Values as a policy file writes them: exact, so that reading gives them back.

extension ByteCount {
  /// `16MB`, `1536MB`; the largest unit that is whole.
  var policyText: String {
    for unit in sizeUnits.reversed() where bytes != 0 && bytes % unit.bytes == 0 {
      return "\(bytes / unit.bytes)\(unit.name)"
    }
    return "\(bytes)B"
  }
}

/// `5%`, `2.5%`; thousandths at the finest, as they are read.
func percentText(_ percent: Double) -> String {
  // Nothing outside 0–100 comes out of a policy file; a value made in code may hold anything.
  guard percent.isFinite, percent.magnitude < 1e12 else { return "0%" }
  let thousandths = Int64((percent * 1_000).rounded())
  let (whole, rest) = thousandths.magnitude.quotientAndRemainder(dividingBy: 1_000)
  var decimals = String(String(rest + 1_000).dropFirst())
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

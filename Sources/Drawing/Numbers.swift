/// The number as text with that many decimals, without Foundation.
public func fixed(_ value: Double, _ decimals: Int) -> String {
  let scale = (0..<decimals).reduce(1.0) { product, _ in product * 10 }
  let scaled = (value.magnitude * scale).rounded()
  guard scaled.isFinite, scaled < 1e15 else { return "?" }
  let digits = String(Int64(scaled))
  let padded = String(repeating: "0", count: max(0, decimals + 1 - digits.count)) + digits
  let sign = value < 0 && scaled > 0 ? "-" : ""
  if decimals == 0 { return sign + padded }
  return "\(sign)\(padded.dropLast(decimals)).\(padded.suffix(decimals))"
}

/// Escapes the control characters that JSON allows in a text (DEL, C1 and bidirectional controls),
/// so that they don't affect a terminal. The meaning of the JSON stays the same.
func escapingControls(in json: [UInt8]) -> [UInt8] {
  // In UTF-8 each of these characters is 7F, or begins with one of the other bytes.
  let isSuspect = { (byte: UInt8) in byte == 0x7F || byte == 0xC2 || byte == 0xD8 || byte == 0xE2 }
  guard json.contains(where: isSuspect) else { return json }
  var result: [UInt8] = []
  result.reserveCapacity(json.count + 64)
  for scalar in String(decoding: json, as: UTF8.self).unicodeScalars {
    // Lower control characters are escaped already, or are between values.
    if scalar.value >= 0x7F, mustBeEscaped(scalar) {
      let digits = String(scalar.value, radix: 16)
      result += "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".utf8
    } else {
      result += UTF8.encode(scalar).map(Array.init) ?? []
    }
  }
  return result
}

/// A worker's or a wrapper's record with other values, and their checksum (CRC-32 of IEEE 802.3).
func recordText(_ text: String, setting values: [String: String]) -> String {
  var left = values
  var lines = text.split(separator: "\n").dropLast().map { line in
    let key = line.prefix { $0 != "=" }
    return left.removeValue(forKey: String(key)).map { "\(key)=\($0)" } ?? String(line)
  }
  lines += left.map { "\($0)=\($1)" }
  let body = lines.joined(separator: "\n") + "\n"
  var sum = UInt32.max
  for byte in body.utf8 {
    sum ^= UInt32(byte)
    for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
  }
  let digits = String(~sum, radix: 16)
  return body + "crc32=" + String(repeating: "0", count: 8 - digits.count) + digits + "\n"
}

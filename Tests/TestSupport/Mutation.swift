extension TestRandom {
  /// The bytes with one to four random changes: other bytes, parts left out, repeated or
  /// exchanged with zeros, large numbers, line ends.
  public mutating func mutated(_ bytes: [UInt8]) -> [UInt8] {
    var result = bytes
    for _ in 0..<Int.random(in: 1...4, using: &self) {
      let start = Int.random(in: 0...result.count, using: &self)
      let maxLength = min(result.count - start, 32)
      let range = start..<(start + Int.random(in: 0...maxLength, using: &self))
      switch Int.random(in: 0..<7, using: &self) {
      case 0: result.removeSubrange(range)
      case 1: result.insert(contentsOf: result[range], at: start)
      case 2: result.replaceSubrange(range, with: Array("18446744073709551615".utf8))
      case 3: result.replaceSubrange(range, with: Array("-9223372036854775808".utf8))
      case 4: result.removeSubrange(start...)
      case 5:
        result.insert(contentsOf: Array("\n \0:()\"'\\=".utf8).shuffled(using: &self), at: start)
      default:
        for index in range { result[index] = UInt8.random(in: 0...255, using: &self) }
      }
    }
    return result
  }
}

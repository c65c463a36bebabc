import Checksum
import JSONLines

// A small file of facts, which is always replaced as a whole:
//
//     dormouse memory 1       the content's name and the format's version
//     {"…":…}                 the facts: a line of JSON
//     crc32c 0123abcd         the checksum of all before it

enum SealedFacts {
  private static let maxLength = 16 << 20

  static func encode(_ facts: some Encodable, title: String) throws -> String {
    text([String(decoding: try JSON(encoding: facts).line, as: UTF8.self)], title: title)
  }

  /// The text of a file with these lines between the title and the checksum.
  static func text(_ lines: [String], title: String) -> String {
    let body = ([title] + lines).map { $0 + "\n" }.joined()
    return body + seal(body.utf8)
  }

  /// Reads the facts; nil if `encode` hasn't written the file or it is damaged.
  static func decode<Facts: Decodable>(
    _ type: Facts.Type, from bytes: [UInt8], title: String
  ) -> Facts? {
    guard let lines = lines(of: bytes, title: title), lines.count == 1 else { return nil }
    // If the facts can't be decoded, the file counts as damaged.
    return try? JSON(Array(lines[0]))?.decode(type)
  }

  /// The lines between the title and the checksum; nil if the file is damaged.
  static func lines(of bytes: [UInt8], title: String) -> [ArraySlice<UInt8>]? {
    guard bytes.count <= maxLength else { return nil }
    var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    // The last line has a line end too.
    guard lines.count >= 3, lines.removeLast().isEmpty, lines[0].elementsEqual(title.utf8),
      let sum = lines.popLast(),
      bytes[sum.startIndex...].elementsEqual(seal(bytes[..<sum.startIndex]).utf8)
    else { return nil }
    return Array(lines.dropFirst())
  }

  /// The line with the checksum of what is before it.
  private static func seal(_ body: some Sequence<UInt8>) -> String {
    "crc32c \(CRC32.castagnoli.text(of: body))\n"
  }
}

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
    let line = String(decoding: try JSON(encoding: facts).line, as: UTF8.self)
    let body = "\(title)\n\(line)\n"
    return body + seal(body.utf8)
  }

  /// Reads the facts; nil if `encode` hasn't written the file or it is damaged.
  static func decode<Facts: Decodable>(
    _ type: Facts.Type, from bytes: [UInt8], title: String
  ) -> Facts? {
    guard bytes.count <= maxLength else { return nil }
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    guard lines.count == 4, lines[3].isEmpty, lines[0].elementsEqual(title.utf8) else { return nil }
    let body = bytes[..<lines[2].startIndex]
    guard bytes[lines[2].startIndex...].elementsEqual(seal(body).utf8) else { return nil }
    // If the facts can't be decoded, the file counts as damaged.
    return try? JSON(Array(lines[1]))?.decode(type)
  }

  /// The line with the checksum of what is before it.
  static func seal(_ body: some Sequence<UInt8>) -> String {
    "crc32c \(CRC32.castagnoli.text(of: body))\n"
  }
}

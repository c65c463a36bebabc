/// A request that has come whole.
struct HTTPRequest: Equatable {
  var path: String
  var body: String

  /// Takes the first whole request from `bytes`; `nil` while there is none.
  init?(_ bytes: inout [UInt8]) {
    let end = Array("\r\n\r\n".utf8)
    guard
      let head = bytes.indices.first(where: { bytes[$0...].starts(with: end) })
    else { return nil }
    let lines = String(decoding: bytes[..<head], as: UTF8.self).split(separator: "\r\n")
    let length = lines.dropFirst().lazy.compactMap(Self.contentLength).first ?? 0
    let start = head + end.count
    guard length >= 0, bytes.count - start >= length else { return nil }
    let words = (lines.first ?? "").split(separator: " ")
    path = words.count > 1 ? String(words[1]) : "/"
    body = String(decoding: bytes[start..<start + length], as: UTF8.self)
    bytes.removeFirst(start + length)
  }

  private static func contentLength(_ line: Substring) -> Int? {
    let parts = line.split(separator: ":", maxSplits: 1)
    guard parts.count == 2, parts[0].lowercased() == "content-length" else { return nil }
    return Int(parts[1].drop { $0 == " " })
  }

  /// The same as a line that is typed. Line ends in a text become spaces.
  var command: String {
    let words = path.split(separator: "?")[0].split(separator: "/").map(String.init)
    let text = body.split(whereSeparator: \.isNewline).joined(separator: " ")
    let line = (words + (text.isEmpty ? [] : [text])).joined(separator: " ")
    return line.isEmpty ? "entries" : line
  }
}

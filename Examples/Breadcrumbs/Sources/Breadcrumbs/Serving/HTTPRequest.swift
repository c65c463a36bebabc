/// The part of HTTP/1.1 (RFC 9112) that this program needs: no chunks, no continuations.
struct HTTPRequest: Hashable {
  enum Problem: Error, Hashable {
    case malformed
    case tooLarge
    /// The transfer coding isn't supported.
    case unsupported
  }

  static let maxHead = 8192
  static let maxBody = 65536

  var method: String
  /// The components of the path, decoded and without the query.
  var path: [String]
  var body: String
  var keepsOpen: Bool

  /// Removes the first request from the received bytes; `nil` if it isn't complete yet.
  static func removeFirst(from received: inout [UInt8]) throws(Problem) -> HTTPRequest? {
    guard let end = headEnd(received) else {
      if received.count > maxHead { throw .tooLarge }
      return nil
    }
    guard end <= maxHead else { throw .tooLarge }
    let head = String(decoding: received[..<end], as: UTF8.self)
    var lines = head.split(separator: "\r\n", omittingEmptySubsequences: true)[...]
    guard let first = lines.popFirst() else { throw .malformed }
    var fields: [String: Substring] = [:]
    for line in lines {
      guard let colon = line.firstIndex(of: ":") else { throw .malformed }
      let value = line[line.index(after: colon)...].drop { $0 == " " }
      // Two lengths are an error: the peer may mean the other one.
      let earlier = fields.updateValue(value, forKey: line[..<colon].lowercased())
      if earlier != nil, line[..<colon].lowercased() == "content-length" { throw .malformed }
    }
    if fields["transfer-encoding"] != nil { throw .unsupported }
    let length = try bodyLength(fields["content-length"])
    guard received.count >= end + length else { return nil }
    let body = String(decoding: received[end..<(end + length)], as: UTF8.self)
    received.removeFirst(end + length)
    return try HTTPRequest(first, body: body, connection: fields["connection"])
  }

  private init(_ line: Substring, body: String, connection: Substring?) throws(Problem) {
    let fields = line.split(separator: " ", omittingEmptySubsequences: false)
    guard fields.count == 3, fields[1].hasPrefix("/"), fields[2].hasPrefix("HTTP/1.") else {
      throw .malformed
    }
    method = String(fields[0])
    var path: [String] = []
    for component in fields[1].prefix(while: { $0 != "?" }).split(separator: "/") {
      guard let decoded = Self.percentDecoded(component) else { throw .malformed }
      path.append(decoded)
    }
    self.path = path
    self.body = body
    let wish = connection?.lowercased()
    keepsOpen = fields[2] == "HTTP/1.1" ? wish != "close" : wish == "keep-alive"
  }

  private static func bodyLength(_ field: Substring?) throws(Problem) -> Int {
    guard let field else { return 0 }
    guard !field.isEmpty, field.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      throw .malformed
    }
    guard let length = Int(field), length <= maxBody else { throw .tooLarge }
    return length
  }

  /// Returns the offset behind the empty line.
  private static func headEnd(_ bytes: [UInt8]) -> Int? {
    guard bytes.count >= 4 else { return nil }
    for start in 0...min(bytes.count - 4, maxHead)
    where bytes[start] == 13 && bytes[start + 1] == 10 && bytes[start + 2] == 13
      && bytes[start + 3] == 10
    {
      return start + 4
    }
    return nil
  }

  private static func percentDecoded(_ text: Substring) -> String? {
    var bytes: [UInt8] = []
    var remainder = text.utf8[...]
    while let byte = remainder.popFirst() {
      guard byte == 0x25 else {
        bytes.append(byte)
        continue
      }
      guard remainder.count >= 2, let value = UInt8(String(remainder.prefix(2)) ?? "", radix: 16)
      else {
        return nil
      }
      bytes.append(value)
      remainder = remainder.dropFirst(2)
    }
    return String(validating: bytes, as: UTF8.self)
  }
}

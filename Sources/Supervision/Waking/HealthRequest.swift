/// The request of a health check, as far as it has been received.
public struct HealthRequest: Hashable, Sendable {
  public enum Verdict: Hashable, Sendable {
    /// The request isn't complete yet.
    case incomplete
    /// The request is a GET or HEAD of one of the paths.
    case check(hasBody: Bool)
    case other
  }

  private var received: [UInt8] = []
  private let paths: [String]
  /// The maximum number of bytes of a request's line and headers. A longer request is no health
  /// check.
  private static let limit = 8 << 10

  public init(paths: [String]) { self.paths = paths }

  public var isEmpty: Bool { received.isEmpty }

  public mutating func receive(_ bytes: [UInt8]) -> Verdict {
    received += bytes
    // The headers must have arrived, too: closing a connection with unread input would reset it,
    // and the client would lose the answer.
    let text = String(decoding: received, as: UTF8.self)
    guard received.suffix(4) == [13, 10, 13, 10] else {
      return received.count > Self.limit || received.contains(0) ? .other : .incomplete
    }
    // In Swift, CR LF is one Character.
    let tokens = text.split(separator: "\r\n").first?.split(separator: " ") ?? []
    guard tokens.count == 3, tokens[2].hasPrefix("HTTP/1."),
      tokens[0] == "GET" || tokens[0] == "HEAD",
      paths.contains(where: { tokens[1].prefix(while: { $0 != "?" }) == $0 })
    else { return .other }
    return .check(hasBody: tokens[0] == "GET")
  }
}

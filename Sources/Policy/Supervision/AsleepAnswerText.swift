/// A text that names no health check, such as `8081healthz`.
public struct AsleepAnswerError: Error, Hashable, CustomStringConvertible {
  public var text: String

  public var description: String {
    let line = text.unicodeScalars.prefix(60).map {
      (0x20..<0x7F).contains($0.value) ? String($0) : "?"
    }
    return
      "`\(line.joined())` isn't a health check: allowed are a TCP port, such as `8080`, and a "
      + "port with the path of a request, without a query, such as `8081/healthz`"
  }
}

extension AsleepAnswer {
  /// Reads `8080`, or `8081/healthz`.
  public init(text: String) throws(AsleepAnswerError) {
    let digits = text.utf8.prefix { (48...57).contains($0) }
    let path = text.utf8.dropFirst(digits.count)
    // The part of a request's path after a question mark isn't compared, so it isn't allowed.
    let isPath =
      path.first == 47 && path.allSatisfy { (0x21..<0x7F).contains($0) && $0 != 63 && $0 != 35 }
    guard let port = UInt16(String(decoding: digits, as: UTF8.self)), port > 0,
      path.isEmpty || isPath
    else { throw AsleepAnswerError(text: text) }
    self.init(port: port, path: path.isEmpty ? nil : String(decoding: path, as: UTF8.self))
  }

  /// The health check as a configuration writes it.
  public var text: String { path.map { "\(port)\($0)" } ?? "\(port)" }
}

/// A URL of a local program: `http://127.0.0.1:PORT/path`.
public struct HTTPAddress: Hashable, Sendable {
  /// The port on the loopback interface.
  public var port: UInt16
  /// The path with its query.
  public var path: String
  /// The value of the Host header, as it was given.
  public var host: String

  /// Parses a URL. The result is nil for anything but plain HTTP to this machine.
  public init?(_ text: String) {
    let scheme = "http://"
    guard text.lowercased().hasPrefix(scheme) else { return nil }
    let remainder = text.dropFirst(scheme.count)
    let end = remainder.firstIndex { $0 == "/" || $0 == "?" } ?? remainder.endIndex
    let authority = remainder[..<end]
    let components = authority.split(separator: ":", omittingEmptySubsequences: false)
    guard let name = components.first, ["127.0.0.1", "localhost"].contains(name.lowercased()),
      components.count <= 2, let port = components.count == 2 ? UInt16(components[1]) : 80, port > 0
    else { return nil }
    let path = remainder[end...].prefix { $0 != "#" }
    // A URL must have no characters that would end the request line or add a line.
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else { return nil }
    self.port = port
    self.path = path.hasPrefix("/") ? String(path) : "/\(path)"
    host = String(authority)
  }
}

/// The kind of URL that a benchmark of a local program needs: `http://127.0.0.1:PORT/path`.
public struct HTTPAddress: Hashable, Sendable {
  /// The port at the loopback interface.
  public var port: UInt16
  /// With its query.
  public var path: String
  /// For the Host header, as it was given.
  public var host: String

  /// nil for anything that isn't plain HTTP to this machine.
  public init?(_ text: String) {
    let scheme = "http://"
    guard text.lowercased().hasPrefix(scheme) else { return nil }
    let rest = text.dropFirst(scheme.count)
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let authority = rest[..<end]
    let parts = authority.split(separator: ":", omittingEmptySubsequences: false)
    guard let name = parts.first, ["127.0.0.1", "localhost"].contains(name.lowercased()),
      parts.count <= 2, let port = parts.count == 2 ? UInt16(parts[1]) : 80, port > 0
    else { return nil }
    let path = rest[end...].prefix { $0 != "#" }
    // A URL must not have characters that would end the request line or add a line.
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else { return nil }
    self.port = port
    self.path = path.hasPrefix("/") ? String(path) : "/\(path)"
    host = String(authority)
  }
}

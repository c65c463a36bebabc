/// The value of `--listen`: an address and a port of this machine.
public struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
  /// The address, without brackets.
  public let host: String
  /// The port. With 0 the kernel chooses one.
  public let port: Int
  public let isLoopback: Bool

  public static let standard = ListenAddress(host: "127.0.0.1", port: 7411, isLoopback: true)

  private init(host: String, port: Int, isLoopback: Bool) {
    self.host = host
    self.port = port
    self.isLoopback = isLoopback
  }

  /// Parses a text such as `127.0.0.1:7411`, `[::1]:7411` or `localhost:7411`. The result is nil
  /// for any other.
  public init?(_ text: String) {
    guard let (name, number) = splitHost(text), let number, let port = UInt16(number) else {
      return nil
    }
    // A name could mean another address later, so only `localhost` is accepted.
    let host = name.lowercased() == "localhost" ? "127.0.0.1" : name
    guard let address = IPAddress(host) else { return nil }
    self.init(host: host, port: Int(port), isLoopback: address.isLoopback)
  }

  public var description: String { url(port: port).dropFirst("http://".count).description }

  /// The page's address, without a path. `port` is the one that the kernel chose.
  public func url(port: Int) -> String {
    "http://\(host.contains(":") ? "[\(host)]" : host):\(port)"
  }
}

/// Splits `host:port`, `[address]:port`, or one of them without a port. The result is nil for any
/// other text.
func splitHost(_ text: String) -> (host: String, port: String?)? {
  if text.hasPrefix("[") {
    guard let end = text.firstIndex(of: "]") else { return nil }
    let host = String(text[text.index(after: text.startIndex)..<end])
    let remainder = text[text.index(after: end)...]
    guard IPAddress(host)?.isIPv6 == true || host.lowercased().hasPrefix("::ffff:") else {
      return nil
    }
    if remainder.isEmpty { return (host, nil) }
    return remainder.hasPrefix(":") ? (host, String(remainder.dropFirst())) : nil
  }
  let parts = text.split(separator: ":", omittingEmptySubsequences: false)
  guard parts.count <= 2, !parts[0].isEmpty else { return nil }
  return (String(parts[0]), parts.count == 2 ? String(parts[1]) : nil)
}

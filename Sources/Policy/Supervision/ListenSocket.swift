/// One entry of `listen:`: a socket that the daemon opens and passes to the worker (`LISTEN_FDS`).
public struct ListenSocket: Hashable, Sendable {
  /// Where the socket listens.
  public enum Address: Hashable, Sendable {
    /// A numeric address. `0.0.0.0` and `::` stand for all addresses of the machine.
    case tcp(host: String, port: UInt16)
    case udp(host: String, port: UInt16)
    /// A path, or an abstract name that begins with `@`.
    case unix(String)
  }
  /// The name in `LISTEN_FDNAMES`.
  public var name: String
  public var address: Address

  public init(name: String, address: Address) {
    self.name = name
    self.address = address
  }

  /// Whether the kernel would refuse to bind both.
  public func conflicts(with other: ListenSocket) -> Bool {
    switch (address, other.address) {
    case (.tcp(let host, let port), .tcp(let theirs, let theirPort)),
      (.udp(let host, let port), .udp(let theirs, let theirPort)):
      port == theirPort && Self.overlap(host, theirs)
    case (.unix(let path), .unix(let theirs)): path == theirs
    default: false
    }
  }

  /// `::` accepts IPv4 as well, unless a program says otherwise.
  private static func overlap(_ left: String, _ right: String) -> Bool {
    if left == right || left == "::" || right == "::" { return true }
    let areIPv4 = !left.contains(":") && !right.contains(":")
    return areIPv4 && (left == "0.0.0.0" || right == "0.0.0.0")
  }
}

extension ListenSocket.Address {
  /// The address as a configuration writes it: `127.0.0.1:8080`, `udp:[::1]:53`, `/run/web.sock`.
  public var text: String {
    switch self {
    case .tcp(let host, let port): "\(Self.bracketed(host)):\(port)"
    case .udp(let host, let port): "udp:\(Self.bracketed(host)):\(port)"
    case .unix(let path): path.hasPrefix("/") || path.hasPrefix("@") ? path : "unix:\(path)"
    }
  }

  private static func bracketed(_ host: String) -> String {
    host.contains(":") ? "[\(host)]" : host
  }
}

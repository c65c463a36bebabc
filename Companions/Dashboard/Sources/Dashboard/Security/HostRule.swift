/// The rule that a request must be meant for this server.
///
/// The name of another site can be made to mean 127.0.0.1 (DNS rebinding). Scripts of that site may
/// then read the answers of this server, because the browser treats them as the site's. But the
/// browser still sends the name as `Host`. Therefore only addresses that need no name service are
/// accepted.
struct HostRule: Sendable {
  /// True if addresses that aren't this machine's loopback are accepted, too. Names are never
  /// accepted.
  var allowsRemote: Bool

  /// - Parameters:
  ///   - host: The value of the header.
  ///   - port: The port at which this connection was accepted.
  func permits(_ host: String?, port: Int) -> Bool {
    guard let host, let (name, number) = splitHost(host) else { return false }
    // Without a number the port is that of HTTP.
    guard number ?? "80" == "\(port)" else { return false }
    if name.lowercased() == "localhost" { return true }
    guard let address = IPAddress(name) else { return false }
    return allowsRemote || address.isLoopback
  }

  /// Returns whether a request that changes something comes from a page of this server, if the
  /// browser reports that. Programs that aren't browsers report nothing; they need the token as
  /// well.
  ///
  /// - Parameters:
  ///   - site: `Sec-Fetch-Site`, which a page can't set.
  ///   - host: The request's own `Host`.
  static func isPageOfServer(origin: String?, site: String?, host: String) -> Bool {
    if let site, site != "same-origin" { return false }
    if let origin, origin != "http://\(host)" { return false }
    return true
  }
}

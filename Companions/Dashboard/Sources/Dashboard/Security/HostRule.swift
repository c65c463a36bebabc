/// Whether a request was meant for this server.
///
/// A page of another site can make its name mean 127.0.0.1 (DNS rebinding): its scripts may then read our
/// answers, because to the browser they come from that site. But the browser still sends that name as `Host`. So
/// only what needs no name service is accepted.
struct HostRule: Sendable {
  /// Other addresses than this machine's own are accepted too, still no names.
  var allowsRemote: Bool

  /// - Parameters:
  ///   - host: the header's value.
  ///   - port: where this connection was accepted.
  func permits(_ host: String?, port: Int) -> Bool {
    guard let host, let (name, number) = splitHost(host) else { return false }
    // Without a number it is that of HTTP.
    guard number ?? "80" == "\(port)" else { return false }
    if name.lowercased() == "localhost" { return true }
    guard let address = IPAddress(name) else { return false }
    return allowsRemote || address.isLoopback
  }

  /// Whether a request that changes something comes from a page of this server, as far as the browser says
  /// that. Programs that aren't browsers say nothing; they need the token as well.
  ///
  /// - Parameters:
  ///   - site: `Sec-Fetch-Site`, which a page can't set.
  ///   - host: the request's own `Host`.
  static func isOwnPage(origin: String?, site: String?, host: String) -> Bool {
    if let site, site != "same-origin" { return false }
    if let origin, origin != "http://\(host)" { return false }
    return true
  }
}

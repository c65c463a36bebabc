import Glibc
import Linux

/// Decides whether a request is answered. All data of a page is private, logs above all. Therefore
/// each request needs the token, also one that only reads.
struct RequestGate: Sendable {
  let token: AccessToken
  let sessions = Sessions()
  /// The token that pages send with a request that changes something. It isn't in a cookie: the
  /// browser adds no header for another site's page.
  let actionToken = AccessToken.random()
  let hosts: HostRule
  /// Finds the user of a connection's other end. Tests pass another function.
  let findUser: @Sendable (Endpoint, Endpoint) throws(SystemCallError) -> UInt32?

  init(
    token: AccessToken, allowsRemote: Bool,
    findUser: @escaping @Sendable (Endpoint, Endpoint) throws(SystemCallError) -> UInt32? =
      PeerCheck.user
  ) {
    self.token = token
    hosts = HostRule(allowsRemote: allowsRemote)
    self.findUser = findUser
  }

  /// The facts on which the decision depends.
  struct Facts: Sendable {
    var host: String?
    var origin: String?
    var site: String?
    var cookie: String?
    var authorization: String?
    var actionToken: String?
    var peer: Endpoint?
    var local: Endpoint?
  }

  enum Denial: Error, Hashable, Sendable {
    case host, unknownPeer, otherUser(UInt32), token, origin, actionToken

    var status: Int {
      switch self {
      case .host: 421
      case .token: 401
      case .unknownPeer, .otherUser, .origin, .actionToken: 403
      }
    }

    var text: String {
      switch self {
      case .host:
        "This request is for another host. Use the address that `dormouse dashboard` printed: "
          + "127.0.0.1, "
          + "[::1] or localhost, with its own port."
      case .unknownPeer: "The process at the other end of this connection was not found."
      case .otherUser(let user):
        "The process at the other end of this connection belongs to user \(user), not to the user "
          + "of this "
          + "dashboard."
      case .token:
        "This page needs a token, and a browser's session ends after a day. Open the address that "
          + "`dormouse dashboard` printed when it started."
      case .origin: "Another site's page sent this request."
      case .actionToken: "This request has no valid X-Dormouse-Token. Load the page again."
      }
    }
  }

  /// Checks that the connection is for this server, and from this user. It reads a file of /proc.
  func checkConnection(_ facts: Facts) throws(Denial) {
    guard let local = facts.local, let peer = facts.peer else { throw .unknownPeer }
    guard hosts.permits(facts.host, port: local.port) else { throw .host }
    if !peer.address.isLoopback, hosts.allowsRemote { return }
    // If the user can't be found, access is denied.
    guard let user = try? findUser(peer, local) else { throw .unknownPeer }
    guard Self.isThisUser(user) else { throw .otherUser(user) }
  }

  private static func isThisUser(_ user: UInt32) -> Bool { user == geteuid() || user == 0 }

  /// Returns the owner of a connection before a request has arrived. It reads a file of /proc.
  func owner(peer: Endpoint?, local: Endpoint?) -> ConnectionQuota.Owner {
    guard let peer, let local else { return .stranger }
    if !peer.address.isLoopback, hosts.allowsRemote { return .remote(peer.address) }
    // A user that can't be found counts as a stranger.
    guard let user = try? findUser(peer, local), Self.isThisUser(user) else { return .stranger }
    return .thisUser
  }

  /// Checks that the request may read. Returns the end of the permission, or nil if it has none.
  @discardableResult
  func checkToken(
    _ facts: Facts, at now: ContinuousClock.Instant = .now
  ) throws(Denial) -> ContinuousClock.Instant? {
    if let site = facts.site, site == "cross-site" || site == "same-site" { throw .origin }
    if hasBearer(facts) { return nil }
    guard let cookie = facts.cookie, let end = sessions.end(of: cookie, at: now) else {
      throw .token
    }
    return end
  }

  /// Checks that the request may change something. `checkToken` must come before.
  func checkAction(_ facts: Facts) throws(Denial) {
    guard HostRule.isPageOfServer(origin: facts.origin, site: facts.site, host: facts.host ?? "")
    else {
      throw .origin
    }
    guard hasBearer(facts) || facts.actionToken.map(actionToken.matches) == true else {
      throw .actionToken
    }
  }

  private func hasBearer(_ facts: Facts) -> Bool {
    guard let fields = facts.authorization?.split(separator: " ", maxSplits: 1), fields.count == 2,
      fields[0].lowercased() == "bearer"
    else { return false }
    return token.matches(fields[1])
  }

  /// The name of the cookie. Cookies are sent to all ports of a host, so the name has this port:
  /// two dashboards don't replace each other's.
  static func cookieName(port: Int) -> String { "dormouse-\(port)" }

  /// Returns the value of a cookie in the header `Cookie`.
  static func cookie(_ name: String, in header: String?) -> String? {
    for pair in header?.split(separator: ";") ?? [] {
      let parts = pair.split(separator: "=", maxSplits: 1)
      guard parts.count == 2, parts[0].drop(while: { $0 == " " }) == name[...] else { continue }
      return String(parts[1])
    }
    return nil
  }
}

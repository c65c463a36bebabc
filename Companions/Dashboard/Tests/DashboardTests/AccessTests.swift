import Glibc
import Testing

@testable import Dashboard

@Suite("Access to the dashboard") struct AccessTests {
  @Test(
    "An address to listen at has a literal address and a port",
    arguments: [
      ("127.0.0.1:7411", "127.0.0.1", 7411, true), ("[::1]:80", "::1", 80, true),
      ("localhost:0", "127.0.0.1", 0, true), ("0.0.0.0:7411", "0.0.0.0", 7411, false),
      ("[::]:7411", "::", 7411, false), ("192.168.1.2:1", "192.168.1.2", 1, false),
      ("[::ffff:127.0.0.1]:5", "::ffff:127.0.0.1", 5, true),
    ])
  func address(text: String, host: String, port: Int, isLoopback: Bool) throws {
    let address = try #require(ListenAddress(text))
    #expect(address.host == host && address.port == port && address.isLoopback == isLoopback)
  }

  @Test(
    "Anything else is no address to listen at",
    arguments: [
      "", "7411", ":7411", "127.0.0.1", "example.org:80", "127.0.0.1:x", "127.0.0.1:70000",
      "::1:80",
    ])
  func noAddress(text: String) { #expect(ListenAddress(text) == nil) }

  @Test(
    "A request needs a loopback address or localhost as its host, with the server's port",
    arguments: [
      ("127.0.0.1:7411", true), ("localhost:7411", true), ("LOCALHOST:7411", true),
      ("[::1]:7411", true), ("127.8.8.8:7411", true), ("127.0.0.1", false), ("localhost:80", false),
      ("localhost.:7411", false), ("rebound.example:7411", false),
      ("127.0.0.1.example:7411", false),
      ("10.0.0.1:7411", false), ("[fe80::1]:7411", false), ("", false),
      ("127.0.0.1:7411:7411", false),
      ("127.0.0.1:07411", false), ("[::1]7411", false), ("[127.0.0.1]:7411", false),
    ])
  func host(header: String, isPermitted: Bool) {
    #expect(HostRule(allowsRemote: false).permits(header, port: 7411) == isPermitted)
  }

  @Test(
    "A request without a host is refused; --allow-remote accepts other addresses, and no names"
  )
  func remote() {
    #expect(!HostRule(allowsRemote: false).permits(nil, port: 7411))
    #expect(HostRule(allowsRemote: true).permits("10.0.0.1:7411", port: 7411))
    #expect(!HostRule(allowsRemote: true).permits("rebound.example:7411", port: 7411))
    #expect(HostRule(allowsRemote: false).permits("127.0.0.1", port: 80))
  }

  @Test("A token is 64 random digits, and only itself matches")
  func token() {
    let token = AccessToken.random()
    #expect(token.text.count == 64 && token != .random())
    #expect(token.matches(token.text))
    #expect(
      !token.matches("") && !token.matches(token.text.dropLast())
        && !token.matches(token.text + "0"))
    #expect(!token.matches(String(repeating: "0", count: 64)))
  }

  @Test(
    "A token file is made private and read again; a short or a readable one is refused"
  )
  func tokenFile() throws {
    let scratch = try Scratch()
    let path = "\(scratch.path)/token"
    let made = try AccessToken.inFile(path)
    #expect(try AccessToken.inFile(path) == made)
    chmod(path, 0o644)
    #expect(throws: AccessTokenError.notPrivate(path)) { try AccessToken.inFile(path) }
    #expect(throws: AccessTokenError.weak("f")) { try AccessToken.parsed("short", "f") }
    #expect(throws: AccessTokenError.weak("f")) {
      try AccessToken.parsed(String(repeating: "ä", count: 40), "f")
    }
  }

  @Test("A cookie is found among others by its whole name")
  func cookie() {
    let header = "other=1; dormouse-7411=abc; xdormouse-7411=no; dormouse-741=no"
    #expect(RequestGate.cookie("dormouse-7411", in: header) == "abc")
    #expect(RequestGate.cookie("dormouse-7412", in: header) == nil)
    #expect(RequestGate.cookie("dormouse-7411", in: nil) == nil)
  }

  // MARK: the gate

  private static let authority = "127.0.0.1:7411"

  private func gate(user: UInt32? = geteuid(), allowsRemote: Bool = false) -> RequestGate {
    RequestGate(token: AccessToken(text: "right"), allowsRemote: allowsRemote) { _, _ in user }
  }

  private func facts(peer: String = "127.0.0.1") throws -> RequestGate.Facts {
    RequestGate.Facts(
      host: Self.authority, peer: Endpoint(address: try #require(IPAddress(peer)), port: 40_000),
      local: Endpoint(address: try #require(IPAddress("127.0.0.1")), port: 7411))
  }

  private func denial(_ body: () throws(RequestGate.Denial) -> Void) -> RequestGate.Denial? {
    do throws(RequestGate.Denial) {
      try body()
      return nil
    } catch { return error }
  }

  @Test(
    "A connection of this user or of root is served, one of another user or an unknown one isn't")
  func peers() throws {
    let facts = try facts()
    #expect(denial { () throws(RequestGate.Denial) in try gate().checkConnection(facts) } == nil)
    #expect(
      denial { () throws(RequestGate.Denial) in try gate(user: 0).checkConnection(facts) } == nil)
    let other = geteuid() + 1
    #expect(
      denial { () throws(RequestGate.Denial) in try gate(user: other).checkConnection(facts) }
        == .otherUser(other))
    #expect(
      denial { () throws(RequestGate.Denial) in try gate(user: nil).checkConnection(facts) }
        == .unknownPeer)
  }

  @Test("A peer on another machine has no user here: it is served only with --allow-remote")
  func remotePeer() throws {
    let facts = try facts(peer: "192.168.1.9")
    #expect(
      denial { () throws(RequestGate.Denial) in try gate(user: nil).checkConnection(facts) }
        == .unknownPeer)
    let open = gate(user: nil, allowsRemote: true)
    #expect(denial { () throws(RequestGate.Denial) in try open.checkConnection(facts) } == nil)
    // A connection of this machine is still checked by its user.
    let local = try self.facts()
    #expect(
      denial { () throws(RequestGate.Denial) in try open.checkConnection(local) } == .unknownPeer)
  }

  @Test(
    "Reading takes a session or the token as a bearer, and no page of another site may read")
  func reading() throws {
    let gate = gate()
    var facts = try facts()
    #expect(denial { () throws(RequestGate.Denial) in _ = try gate.checkToken(facts) } == .token)
    facts.cookie = "wrong"
    #expect(denial { () throws(RequestGate.Denial) in _ = try gate.checkToken(facts) } == .token)
    // The token isn't a session.
    facts.cookie = "right"
    #expect(denial { () throws(RequestGate.Denial) in _ = try gate.checkToken(facts) } == .token)
    facts.cookie = gate.sessions.begin().text
    #expect(denial { () throws(RequestGate.Denial) in _ = try gate.checkToken(facts) } == nil)
    facts.site = "cross-site"
    #expect(denial { () throws(RequestGate.Denial) in _ = try gate.checkToken(facts) } == .origin)
    facts = try self.facts()
    facts.authorization = "Bearer right"
    #expect(denial { () throws(RequestGate.Denial) in _ = try gate.checkToken(facts) } == nil)
    facts.authorization = "Basic right"
    #expect(denial { () throws(RequestGate.Denial) in _ = try gate.checkToken(facts) } == .token)
  }

  @Test("A change takes the page's token in a header, and an own page as its origin")
  func changing() throws {
    let gate = gate()
    var facts = try facts()
    facts.cookie = gate.sessions.begin().text
    #expect(denial { () throws(RequestGate.Denial) in try gate.checkAction(facts) } == .actionToken)
    facts.actionToken = "right"
    #expect(denial { () throws(RequestGate.Denial) in try gate.checkAction(facts) } == .actionToken)
    facts.actionToken = gate.actionToken.text
    #expect(denial { () throws(RequestGate.Denial) in try gate.checkAction(facts) } == nil)
    for origin in [
      "http://localhost:7411", "https://127.0.0.1:7411", "null", "http://evil.example",
    ] {
      facts.origin = origin
      #expect(denial { () throws(RequestGate.Denial) in try gate.checkAction(facts) } == .origin)
    }
    facts.origin = "http://\(Self.authority)"
    #expect(denial { () throws(RequestGate.Denial) in try gate.checkAction(facts) } == nil)
    for site in ["cross-site", "same-site", "none"] {
      facts.site = site
      #expect(denial { () throws(RequestGate.Denial) in try gate.checkAction(facts) } == .origin)
    }
    facts.site = "same-origin"
    #expect(denial { () throws(RequestGate.Denial) in try gate.checkAction(facts) } == nil)
  }

  // MARK: the other end

  // MARK: sessions and places

  @Test("A session ends after a day, and the oldest of too many ends at once")
  func sessions() {
    let sessions = Sessions()
    let began = ContinuousClock.now
    let first = sessions.begin(at: began)
    #expect(first.text.count == 64)
    let last = began + Sessions.lifetime - .seconds(1)
    #expect(sessions.end(of: first.text, at: last) == began + Sessions.lifetime)
    #expect(sessions.end(of: first.text, at: began + Sessions.lifetime) == nil)
    #expect(sessions.end(of: "", at: began) == nil)
    let others = (1...Sessions.maxCount).map { sessions.begin(at: began + .seconds($0)) }
    #expect(Set(others).count == Sessions.maxCount)
    #expect(sessions.end(of: first.text, at: last) == nil)
    #expect(others.allSatisfy { sessions.end(of: $0.text, at: last) != nil })
  }

  @Test("Strangers and other machines have places of their own, and leave this user's free")
  func quota() throws {
    var quota = ConnectionQuota()
    func fill(_ owner: ConnectionQuota.Owner) -> Int {
      (0..<1000).count { _ in quota.add(owner) }
    }
    let machines = try (1...9).map {
      ConnectionQuota.Owner.remote(try #require(IPAddress("10.0.0.\($0)")))
    }
    #expect(fill(.stranger) == ConnectionQuota.ofStrangers)
    #expect(fill(machines[0]) == ConnectionQuota.ofOneRemote)
    #expect(
      machines.dropFirst().reduce(0) { $0 + fill($1) }
        == ConnectionQuota.ofRemotes - ConnectionQuota.ofOneRemote)
    #expect(fill(.thisUser) == ConnectionQuota.ofThisUser)
    // None of the owners can stop the server from accepting.
    #expect(
      ConnectionQuota.ofThisUser + ConnectionQuota.ofStrangers + ConnectionQuota.ofRemotes
        < ConnectionQuota.all)
    for owner in [.thisUser, .stranger, machines[0]] {
      quota.free(owner)
      #expect(fill(owner) == 1)
    }
  }

  @Test("Before a request comes, a connection is this user's, a stranger's or another machine's")
  func owners() throws {
    let here = try facts()
    let away = try facts(peer: "192.168.1.9")
    let remote = try #require(away.peer).address
    #expect(gate().owner(peer: here.peer, local: here.local) == .thisUser)
    #expect(gate(user: 0).owner(peer: here.peer, local: here.local) == .thisUser)
    #expect(gate(user: geteuid() + 1).owner(peer: here.peer, local: here.local) == .stranger)
    #expect(gate(user: nil).owner(peer: here.peer, local: here.local) == .stranger)
    #expect(gate(user: nil).owner(peer: away.peer, local: away.local) == .stranger)
    let open = gate(user: nil, allowsRemote: true)
    #expect(open.owner(peer: away.peer, local: away.local) == .remote(remote))
    #expect(open.owner(peer: here.peer, local: here.local) == .stranger)
    #expect(open.owner(peer: nil, local: here.local) == .stranger)
  }
}

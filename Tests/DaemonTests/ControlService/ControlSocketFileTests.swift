import Glibc
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("The file of the control socket") struct ControlSocketFileTests {
  private let scratch: Scratch
  private let path: String
  private let loop: EventLoop
  private let control: ControlWorld

  init() throws {
    scratch = try Scratch()
    path = scratch.path + "/control.sock"
    loop = try EventLoop()
    control = try ControlWorld()
  }

  @Test func `The socket replaces a file that was left, but not another daemon's`() throws {
    do {
      let first = ControlServer(path: path, loop, DaemonLog())
      try first.open(control.service)
      #expect(throws: StartError.self) {
        try ControlServer(path: path, loop, DaemonLog()).open(control.service)
      }
      withExtendedLifetime(first) {}
    }
    var old: Descriptor? = try UnixSocket.bound(to: path, .stream)
    withExtendedLifetime(old) {}
    old = nil
    #expect(access(path, F_OK) == 0)
    let second = ControlServer(path: path, loop, DaemonLog())
    try second.open(control.service)
    var status = stat()
    #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    withExtendedLifetime(second) {}
  }

  @Test func `Before it is opened there is no client, nothing listens, and its end does nothing`() {
    let socket = ControlServer(path: path, loop, DaemonLog())
    #expect(socket.process(of: ClientID(number: 1)) == nil)
    socket.announceEnd("the daemon ends")
    socket.close()
    #expect(isAbsent(path))
  }

  @Test func `A path that is too long for a socket, or can't be used, is refused`() throws {
    #expect(throws: StartError.self) {
      try ControlListener.check(path: "/" + String(repeating: "x", count: 200))
    }
    #expect(throws: Never.self) { try ControlListener.check(path: path) }
    let file = try scratch.write("file", "")
    let socket = ControlServer(path: file + "/control.sock", loop, DaemonLog())
    #expect(throws: StartError.self) { try socket.open(control.service) }
    #expect(socket.process(of: ClientID(number: 1)) == nil)
  }
}

@Suite("Clients of the control socket") struct ClientQuotaTests {
  private static func at(_ seconds: Int64) -> Instant { .zero + .seconds(1000 + seconds) }

  private static func id(_ number: Int) -> ClientID { ClientID(number: UInt64(number)) }

  private static func small() -> ClientQuota {
    var quota = ClientQuota()
    quota.maxClients = 4
    quota.maxOfUser = 3
    return quota
  }

  @Test func `A full socket closes the oldest connection that has sent no whole request`() {
    var quota = Self.small()
    let first = (1...3).map { quota.admit(Self.id($0), user: 7, at: Self.at(0)) }
    #expect(first == [.admitted, .admitted, .admitted])
    quota.heard(Self.id(1), isPartial: false, completed: true, at: Self.at(0))
    let later = (4...5).map { quota.admit(Self.id($0), user: 7, at: Self.at(1)) }
    #expect(later == [.insteadOf(Self.id(2)), .insteadOf(Self.id(3))])
  }

  @Test func `The connections of one user don't shut out another user`() {
    var quota = Self.small()
    for id in 1...3 {
      _ = quota.admit(Self.id(id), user: 7, at: Self.at(0))
      quota.heard(Self.id(id), isPartial: false, completed: true, at: Self.at(0))
    }
    let sameUser = quota.admit(Self.id(4), user: 7, at: Self.at(0))
    #expect(sameUser == .refused)
    let other = quota.admit(Self.id(5), user: 0, at: Self.at(0))
    #expect(other == .admitted)
    #expect(!quota.isFull)
    quota.heard(Self.id(5), isPartial: false, completed: true, at: Self.at(0))
    #expect(quota.isFull)
    quota.remove(Self.id(1))
    #expect(!quota.isFull)
  }

  @Test func `A request may take 30 s to arrive, however slowly, and an idle client may stay`() {
    var quota = ClientQuota()
    _ = quota.admit(Self.id(1), user: 7, at: Self.at(0))
    _ = quota.admit(Self.id(2), user: 7, at: Self.at(0))
    _ = quota.admit(Self.id(3), user: 7, at: Self.at(0))
    quota.heard(Self.id(2), isPartial: false, completed: true, at: Self.at(1))
    quota.heard(Self.id(3), isPartial: false, completed: true, at: Self.at(1))
    quota.heard(Self.id(3), isPartial: true, completed: false, at: Self.at(10))
    quota.heard(Self.id(3), isPartial: true, completed: false, at: Self.at(39))
    #expect(quota.overdue(at: Self.at(29)).isEmpty)
    #expect(quota.overdue(at: Self.at(30)) == [Self.id(1)])
    #expect(Set(quota.overdue(at: Self.at(40))) == [Self.id(1), Self.id(3)])
    #expect(Set(quota.overdue(at: Self.at(4000))) == [Self.id(1), Self.id(3)])
  }
}

import CLinux
import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("Unaccepted connections") struct ListenerQueueTests {
  private static func socket() -> Descriptor {
    Descriptor(owning: Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
  }

  @Test("Accepting doesn't wait if another process has accepted the connection first")
  func takenByAnother() throws {
    let listener = Self.socket()
    #expect(withLoopback(0) { bind(listener.raw, $0, $1) } == 0)
    #expect(listen(listener.raw, 16) == 0)
    // The listener blocks, and by the time of the call its queue is empty.
    #expect(clinux_accept_shared(listener.raw) == -EAGAIN)
    #expect(try acceptConnection(listener) == nil)
  }

  @Test
  func `Open, closed and unread connections are distinguished without accepting them`() throws {
    let listener = Self.socket()
    #expect(withLoopback(0) { bind(listener.raw, $0, $1) } == 0)
    #expect(listen(listener.raw, 16) == 0)
    guard case .internet(_, let port) = SocketName.local(of: listener) else {
      Issue.record("no port")
      return
    }
    func list() throws -> [UnacceptedConnection] {
      try UnacceptedConnection.list(at: port, networkOf: getpid())
    }
    func connected() -> Descriptor {
      let client = Self.socket()
      #expect(withLoopback(port) { connect(client.raw, $0, $1) } == 0)
      return client
    }
    #expect(try list().isEmpty)
    #expect(try acceptConnection(listener) == nil)

    _ = connected()
    // A child that another test has just forked still has the client's end.
    #expect(try eventually { try list().map(\.isEmpty) == [true] })
    let silent = connected()
    let speaker = connected()
    #expect(write(speaker.raw, "hello", 5) == 5)
    do {
      // The client sends something, and closes.
      let brief = connected()
      #expect(write(brief.raw, "bye", 3) == 3)
    }
    let areListed = try eventually {
      let all = try list()
      return all.map(\.unread).sorted() == [0, 0, 3, 5] && all.filter(\.isEmpty).count == 1
    }
    #expect(areListed)
    #expect(try SocketFacts.read(listener).unread == 4)

    // The oldest connection is accepted first, and isn't in the list any more.
    let first = try #require(try acceptConnection(listener))
    #expect(try first.read(upTo: 10).isEmpty)
    #expect(try list().count == 3)
    #expect(try list().allSatisfy { !$0.isEmpty })
    withExtendedLifetime(silent) {}
  }

  @Test("A connection that a long table repeats is listed once, and one that it omits is found")
  func tornReadings() throws {
    func line(_ client: Int, unread: Int, inode: Int = 0) -> String {
      let hex = String(client, radix: 16, uppercase: true)
      let bytes = String(unread + 0x1_0000_0000, radix: 16).dropFirst()
      return "   1: 0100007F:1F90 0100007F:\(hex) 01 00000000:\(bytes) 00:00000000 00000000"
        + "     0        0 \(inode) 1 0000000000000000 20 4 30 10 -1\n"
    }
    // These connections are accepted. They make the table longer than a page.
    let others = (0..<1000).map { line(0x4000 + $0, unread: 0, inode: 77) }.joined()
    let (one, two) = (line(0xC001, unread: 0), line(0xC002, unread: 5))
    var readings = ["head\n" + one + others + one, "head\n" + others + two + one]
    readings.append(readings[1])
    var connections = UnacceptedConnections(port: 8080)
    var count = 0
    connections.add {
      defer { count += 1 }
      return Array(readings[count].utf8)
    }
    #expect(connections.list.map(\.unread).sorted() == [0, 5])
    #expect(count == 3)
    // An open connection suffices to see that the port is in use.
    var use = UnacceptedConnections(port: 8080, stopsAtUse: true)
    count = 0
    use.add {
      defer { count += 1 }
      return Array(readings[count].utf8)
    }
    #expect(use.list.map(\.unread) == [0] && count == 1)
    // A table that fits into a page is read once.
    var short = UnacceptedConnections(port: 8080)
    short.add { Array(("head\n" + one).utf8) }
    #expect(short.list.count == 1)
  }
}

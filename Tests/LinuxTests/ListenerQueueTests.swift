import CLinux
import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("Connections that nobody has accepted") struct ListenerQueueTests {
  private static func socket() -> Descriptor {
    Descriptor(owning: Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
  }

  @Test("that another process takes first don't make the one wait that comes second")
  func takenByAnother() throws {
    let listener = Self.socket()
    #expect(withLoopback(0) { bind(listener.raw, $0, $1) } == 0)
    #expect(listen(listener.raw, 16) == 0)
    // The listener blocks, and by the time of the call its queue is empty.
    #expect(clinux_accept_shared(listener.raw) == -EAGAIN)
    #expect(try acceptConnection(listener) == nil)
  }

  @Test("are told from those that have gone and those that have spoken, without being taken")
  func kinds() throws {
    let listener = Self.socket()
    #expect(withLoopback(0) { bind(listener.raw, $0, $1) } == 0)
    #expect(listen(listener.raw, 16) == 0)
    guard case .internet(_, let port) = SocketName.local(of: listener) else {
      Issue.record("no port")
      return
    }
    func look() throws -> [UnacceptedConnection] {
      try UnacceptedConnection.list(at: port, networkOf: getpid())
    }
    func connected() -> Descriptor {
      let client = Self.socket()
      #expect(withLoopback(port) { connect(client.raw, $0, $1) } == 0)
      return client
    }
    #expect(try look().isEmpty)
    #expect(try acceptConnection(listener) == nil)

    _ = connected()
    #expect(try look().map(\.isEmpty) == [true])
    let silent = connected()
    let speaker = connected()
    #expect(write(speaker.raw, "hello", 5) == 5)
    do {
      // It says something, and goes.
      let brief = connected()
      #expect(write(brief.raw, "bye", 3) == 3)
    }
    let all = try look()
    #expect(all.count == 4)
    #expect(all.filter(\.isEmpty).count == 1)
    #expect(all.map(\.unread).sorted() == [0, 0, 3, 5])
    #expect(try SocketFacts.read(listener).unread == 4)

    // The oldest comes first, and is in the list no more.
    let first = try #require(try acceptConnection(listener))
    #expect(try first.read(upTo: 10).isEmpty)
    #expect(try look().count == 3)
    #expect(try look().allSatisfy { !$0.isEmpty })
    withExtendedLifetime(silent) {}
  }
}

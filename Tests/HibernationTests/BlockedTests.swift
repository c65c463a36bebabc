import Glibc
import TestSupport
import Testing

@testable import Hibernation
@testable import Linux

/// A process that waits in one system call continues to wait in it after a hibernation, and is
/// woken as before.
@Suite(.serialized)
struct BlockedTests {
  let service = HibernationService()

  enum Kind: String, CaseIterable {
    case pipe, epoll, poll, select, accept, recvtimeo, futex, semop, sigtimedwait, nanosleep
  }

  static let all: [(Kind, Victim.Parking)] = Nightly.oneOfEach(
    Kind.allCases.map { kind in Victim.Parking.available.map { (kind, $0) } })

  @Test("A hibernation doesn't disturb a waiting system call", arguments: all)
  func blocked(kind: Kind, parking: Victim.Parking) throws {
    let program = try Fixture.compile("blocked")
    let file = Fixture.imagePath() + ".futex"
    let argument: [String] =
      switch kind {
      case .futex: [file]
      // The sleep is longer than the three hibernations take on a busy machine.
      case .nanosleep: ["20"]
      default: []
      }
    let victim = try Victim([program, kind.rawValue] + argument, parking: parking)
    var handle = ""
    while case let line = try victim.line(), !line.hasPrefix("ready") {
      handle = String(line.split(separator: " ")[1])
    }
    try victim.waitUntilBlocked()
    for _ in 0..<3 { try victim.cycle(service) }
    // A futex whose word has changed before the thread waits again isn't waited for.
    try victim.waitUntilBlocked()
    try poke(kind, victim, program, kind == .futex ? file : handle)
    #expect(try victim.line().hasPrefix("\(kind.rawValue) ok"))
  }

  private func poke(_ kind: Kind, _ victim: Victim, _ program: String, _ handle: String) throws {
    switch kind {
    case .pipe, .epoll, .poll, .select: try victim.send("")
    case .accept: _ = try Talk(connectedTo: try #require(Int(handle)))
    case .recvtimeo: try Self.sendDatagram(to: try #require(Int(handle)))
    case .sigtimedwait: kill(victim.process.pid, SIGUSR1)
    case .nanosleep: break
    case .futex, .semop:
      let waker = try Victim([program, "poke", kind.rawValue, handle])
      #expect(try waker.line().hasPrefix("\(kind.rawValue) ok"))
    }
  }

  static func sendDatagram(to port: Int) throws {
    let socket = Descriptor(
      owning: try systemCall("socket") { Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0) })
    _ = try systemCall("sendto") {
      withLoopback(UInt16(port)) { sendto(socket.raw, "x", 1, 0, $0, $1) }
    }
  }
}

import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("The control socket with hostile clients") struct ControlSocketTests {
  @Test(
    "A client that doesn't read gets its answers when it reads; other clients are served before")
  func deafClient() throws {
    let daemon = try TestDaemon("workers: { sleeper: { command: sleep 641 } }")
    try daemon.wait("sleeper", toBe: "foreground")
    let before = try Footprint.measure([daemon.pid]).footprint
    let socket = try UnixSocket.connected(to: daemon.socket, .stream)
    let line = Array("{\"id\":1,\"verb\":\"nap\"}\n".utf8)
    let many = [UInt8]((0..<500).map { _ in line }.joined())
    var sent = 0
    // Until the daemon has read nothing for half a second.
    while try pollDescriptor(socket.raw, for: POLLOUT, until: Deadline(in: .milliseconds(500))) {
      let remainder = many[(sent % line.count)...]
      sent += remainder.withUnsafeBytes {
        max(0, send(socket.raw, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)))
      }
      let asked = ContinuousClock.now
      _ = try daemon.ask(.ps)
      let waited = ContinuousClock.now - asked
      #expect(waited < .seconds(20))
      guard sent < 16 << 20 else { throw TestFailure("it takes everything") }
    }
    let grown = Int64(try Footprint.measure([daemon.pid]).footprint) - Int64(before)
    #expect(grown < 8 << 20, "it grew by \(grown) bytes")

    // Once the client reads, it gets an answer to each whole line that it has sent.
    var answers = 0
    while answers < sent / line.count,
      try pollDescriptor(socket.raw, for: POLLIN, until: Deadline(in: .seconds(60)))
    {
      let chunk = try socket.read(upTo: 1 << 20)
      if chunk.isEmpty { break }
      answers += chunk.count { $0 == UInt8(ascii: "\n") }
    }
    #expect(answers == sent / line.count)
  }

  @Test func `Clients that connect and disconnect leave no descriptor open in the daemon`() throws {
    let daemon = try TestDaemon("")
    let before = try daemon.descriptorCount()
    for _ in 0..<300 { _ = try? UnixSocket.connected(to: daemon.socket, .stream) }
    var open: [Descriptor] = []
    for _ in 0..<300 {
      // More than the daemon serves at a time; the kernel's queue holds some of them.
      if let socket = try? UnixSocket.connected(to: daemon.socket, .stream) { open.append(socket) }
    }
    open = []
    _ = try daemon.ask(.ps)
    #expect(try eventually { try daemon.descriptorCount() <= before + 1 })
  }
}

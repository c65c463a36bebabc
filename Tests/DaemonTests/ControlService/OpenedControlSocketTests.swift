import Control
import Glibc
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon

@Suite("The daemon's hold on its control socket") struct OpenedControlSocketTests {
  private let scratch: Scratch
  private let loop: EventLoop
  private let socket: ControlServer
  private let world: ControlWorld

  init() throws {
    scratch = try Scratch()
    loop = try EventLoop()
    world = try ControlWorld()
    socket = ControlServer(path: scratch.path + "/control.sock", loop, DaemonLog())
  }

  private var path: String { scratch.path + "/control.sock" }

  @Test func `Before it is opened there is no client, nothing listens, and its end does nothing`() {
    #expect(socket.process(of: ClientID(number: 1)) == nil)
    socket.announceEnd("the daemon ends")
    socket.close()
    #expect(isAbsent(path))
  }

  @Test func `It keeps the service that answers, and closes for new clients`() throws {
    try socket.open(world.service)
    let client = try ControlTestClient(path)
    try client.ask(1, .ps)
    try loop.turn {
      try client.read()
      return client.answers.count == 1
    }
    #expect(client.answers.map(\.result) == [.done])
    #expect(socket.process(of: ClientID(number: 1)) == testPid)
    socket.close()
    #expect(isAbsent(path))
  }

  @Test func `A path that can't be used is refused, and nothing is open then`() throws {
    let file = try scratch.write("file", "")
    let socket = ControlServer(path: file + "/control.sock", loop, DaemonLog())
    #expect(throws: StartError.self) { try socket.open(world.service) }
    #expect(socket.process(of: ClientID(number: 1)) == nil)
  }

  private var testPid: Int32 { getpid() }
}

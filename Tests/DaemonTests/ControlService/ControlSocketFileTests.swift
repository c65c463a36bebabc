import Glibc
import Linux
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

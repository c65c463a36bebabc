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

  @Test(
    "The socket isn't opened where another daemon answers, and replaces a file that was left behind"
  )
  func inUse() throws {
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

  @Test func `A path that is too long for a socket is refused`() {
    #expect(throws: StartError.self) {
      try ControlListener.check(path: "/" + String(repeating: "x", count: 200))
    }
    #expect(throws: Never.self) { try ControlListener.check(path: path) }
  }
}

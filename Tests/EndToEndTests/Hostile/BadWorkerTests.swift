import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Workers that can't work") struct BadWorkerTests {
  static let calm = """
    policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }

    """

  @Test(
    "A worker that daemonises itself is terminated with all of its processes, and the log says why",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func daemonises(setting: Setting) throws {
    let scratch = try Scratch()
    let pidFile = "\(scratch.path)/pid"
    let script = try scratch.write(
      "forker.py",
      """
      import os, sys, time
      read, write = os.pipe()
      if os.fork():
        os.read(read, 1)
        os._exit(0)
      os.setsid()
      if os.fork(): os._exit(0)
      open(sys.argv[1], "w").write(str(os.getpid()))
      os.write(write, b"x")
      time.sleep(651)
      """)
    let daemon = try TestDaemon(
      Self.calm
        + "workers: { forker: { command: [\(TestMachine.python), \(script), \(pidFile)] } }",
      setting: setting)
    try daemon.wait("forker", toBe: "terminated")
    let pid = try #require(Int32(try readText(pidFile)))
    #expect(try eventually { hasEnded(pid) })
    try daemon.waitForLogText("if the program puts itself into the background")
    #expect(try eventually { try daemon.zombies().isEmpty })
  }

  @Test(.enabled(if: TestMachine.canBecomeNobody, "only root can be two users"))
  func `Another user can't send to a worker's NOTIFY_SOCKET`() throws {
    let daemon = try TestDaemon(
      "workers: { mute: { command: sleep 652, readiness: { notify: true } } }")
    let path = try daemon.recorded("notify", of: "mute")
    let send = """
      import socket, sys
      socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1", sys.argv[1])
      """
    let arguments = TestMachine.becomingNobody + [TestMachine.python, "-c", send, path]
    let outcome = try Command(arguments: arguments).run(in: daemon.scratch)
    #expect(outcome.error.contains("PermissionError"), "\(outcome)")
    #expect(try daemon.worker("mute").state == "launching")
  }

  @Test("A worker that closes its standard descriptors can be suspended, hibernated and woken")
  func closesInput() throws {
    let port = try freePort()
    let scratch = try Scratch()
    let script = try scratch.write(
      "closer.py",
      """
      import http.server, os
      server = http.server.HTTPServer(("127.0.0.1", \(port)), http.server.SimpleHTTPRequestHandler)
      for descriptor in range(3): os.close(descriptor)
      class Quiet(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
          self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers()
          self.wfile.write(b"on")
        def log_message(self, *arguments): pass
      server.RequestHandlerClass = Quiet
      server.serve_forever()
      """)
    let daemon = try TestDaemon(
      Self.calm + """
        workers:
          closer: { command: [\(TestMachine.python), \(script)], readiness: { tcp: \(port) } }
        """)
    try daemon.wait("closer", toBe: "foreground")
    for verb in ["suspend", "hibernate"] {
      try daemon.done(verb, "closer")
      #expect(try HTTPConnection(port: port).get("/") == "on")
    }
  }
}

import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Shedding") struct ShedTests {
  /// A program with 8 MB of cache that only SIGUSR1, or a POST to its port, empties.
  static let hoarder = """
    import ctypes, gc, http.server, os, signal, sys
    cache = [bytearray(os.urandom(1 << 20)) for _ in range(8)]
    def shed(*_):
      cache.clear()
      gc.collect()
      ctypes.CDLL(None).malloc_trim(0)
    class Handler(http.server.BaseHTTPRequestHandler):
      def do_POST(self):
        if self.path == "/shed": shed()
        self.send_response(204 if self.path == "/shed" else 500)
        self.end_headers()
      def log_message(self, *_): pass
    server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    signal.signal(signal.SIGUSR1, shed)
    print("ready", flush=True)
    server.serve_forever(poll_interval=0.2)
    """

  private func daemon(
    _ scratch: Scratch, shed: String, background: String = "suspend_after: 1h, shed_deadline: 30s"
  ) throws -> TestDaemon {
    let script = try scratch.write("hoarder.py", Self.hoarder)
    let port = "\(try freePort())"
    let daemon = try TestDaemon(
      """
      policy_overrides: { background: { \(background) } }
      workers:
        hoarder:
          command: [\(TestMachine.python), \(script), "\(port)"]
          readiness: { log_line: ready }
          shed: \(shed.replacing("PORT", with: port))
      """)
    try daemon.wait("hoarder", toBe: "foreground")
    return daemon
  }

  @Test(
    "A worker frees memory on a signal, a command or a request, and the freed memory is measured",
    arguments: [
      "{ signal: USR1 }", #"{ command: [sh, -c, "kill -USR1 $DORMOUSE_WORKER_PID"] }"#,
      "{ http: { port: PORT, path: /shed } }",
    ])
  func measured(shed: String) throws {
    let scratch = try Scratch()
    let daemon = try daemon(scratch, shed: shed)
    let before = try daemon.currentFootprint("hoarder")
    let said = try daemon.done("warn", "hoarder")
    #expect(said.hasPrefix("hoarder freed "), "\(said)")
    #expect(try eventually { try daemon.worker("hoarder").footprint <= before - 6 << 20 })
    let status = try daemon.done("status", "hoarder")
    #expect(status.contains("freed"), "\(status)")
    // An answer to a request takes some memory, and gives it back.
    if shed.contains("http") { return }
    #expect(try daemon.done("warn", "hoarder").hasPrefix("hoarder freed nothing"))
  }

  @Test("A shed command that hangs is ended at the deadline, and the worker is suspended")
  func deadline() throws {
    let scratch = try Scratch()
    let pidFile = "\(scratch.path)/pid"
    let daemon = try daemon(
      scratch, shed: #"{ command: [sh, -c, "sleep 601 & echo $$ $! > \#(pidFile); wait"] }"#,
      background: "suspend_after: 100ms, shed_deadline: 400ms")
    try daemon.done("suspend", "hoarder")
    var pids: [Int32] = []
    // On a busy machine the shell may be ended before it has written them: then it is asked again.
    for attempt in 0..<50 where pids.count != 2 {
      if attempt > 0 {
        try daemon.done("wake", "hoarder")
        try daemon.done("suspend", "hoarder")
      }
      let text = isAbsent(pidFile) ? "" : try readText(pidFile)
      pids = text.split { $0 == " " || $0 == "\n" }.compactMap { Int32($0) }
    }
    #expect(pids.count == 2)
    #expect(try eventually { pids.allSatisfy { kill($0, 0) != 0 } })
    let status = try daemon.done("status", "hoarder")
    #expect(status.contains("did not answer in time"), "\(status)")
    #expect(try eventually { try daemon.zombies().isEmpty })
  }
}

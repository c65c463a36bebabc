import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Shedding") struct ShedTests {
  /// A program with 8 MB of cache that only SIGUSR1 empties.
  static let hoarder = """
    import ctypes, gc, os, signal, time
    cache = [bytearray(os.urandom(1 << 20)) for _ in range(8)]
    def shed(*_):
      cache.clear()
      gc.collect()
      ctypes.CDLL(None).malloc_trim(0)
    signal.signal(signal.SIGUSR1, shed)
    print("ready", flush=True)
    # Not pause(): a signal that comes just before it would wait for the next one.
    while True: time.sleep(0.2)
    """

  static func configuration(_ script: String, shed: String) -> String {
    """
    policy_overrides: { background: { suspend_after: 1h, shed_deadline: 30s } }
    workers:
      hoarder:
        command: [\(TestMachine.python), \(script)]
        readiness: { log_line: ready }
        shed: \(shed)
    """
  }

  @Test(
    "A worker frees memory on a signal or a command, and the freed memory is measured",
    arguments: ["{ signal: USR1 }", #"{ command: [sh, -c, "kill -USR1 $DORMOUSE_WORKER_PID"] }"#])
  func measured(shed: String) throws {
    let scratch = try Scratch()
    let script = try scratch.write("hoarder.py", Self.hoarder)
    let daemon = try TestDaemon(Self.configuration(script, shed: shed))
    try daemon.wait("hoarder", toBe: "foreground")
    let before = try daemon.currentFootprint("hoarder")
    let said = try daemon.done("warn", "hoarder")
    #expect(said.hasPrefix("hoarder freed "), "\(said)")
    #expect(try eventually { try daemon.worker("hoarder").footprint <= before - 7 << 20 })
    let status = try daemon.done("status", "hoarder")
    #expect(status.contains("freed"), "\(status)")
    #expect(try daemon.done("warn", "hoarder").hasPrefix("hoarder freed nothing"))
  }

  /// An HTTP server whose cache a POST empties.
  private static let server = """
    import ctypes, gc, http.server, os, sys, time
    cache = [bytearray(os.urandom(1 << 20)) for _ in range(8)]
    class Handler(http.server.BaseHTTPRequestHandler):
      def do_POST(self):
        print("asked", self.path, flush=True)
        if self.path == "/slow": time.sleep(600)
        if self.path == "/shed":
          cache.clear()
          gc.collect()
          ctypes.CDLL(None).malloc_trim(0)
        self.send_response(204 if self.path == "/shed" else 500)
        self.end_headers()
      def log_message(self, *_): pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    print("ready", flush=True)
    server.serve_forever()
    """

  private func daemon(path: String, policy: String, _ scratch: Scratch) throws -> TestDaemon {
    let port = try freePort()
    let script = try scratch.write("server.py", Self.server)
    return try TestDaemon(
      """
      policy_overrides:
        hibernate: { after: never }
      \(policy)
      workers:
        hoarder:
          command: [\(TestMachine.python), \(script), "\(port)"]
          readiness: { log_line: ready }
          shed: { http: { port: \(port), path: \(path) } }
      """)
  }

  @Test func `A worker frees memory on an HTTP request, and the freed memory is measured`() throws {
    let scratch = try Scratch()
    let daemon = try daemon(
      path: "/shed", policy: "  background: { suspend_after: 1h, shed_deadline: 20s }", scratch)
    try daemon.wait("hoarder", toBe: "foreground")
    let before = try daemon.currentFootprint("hoarder")
    let said = try daemon.done("warn", "hoarder")
    #expect(said.hasPrefix("hoarder freed "), "\(said)")
    #expect(try eventually { try daemon.worker("hoarder").footprint <= before - 4 << 20 })
  }

  @Test("A worker that reads MEMORY_PRESSURE_WATCH gets memory warnings without any configuration")
  func watch() throws {
    let web = try WebWorker(megabytes: 1, cacheMegabytes: 8)
    let daemon = try TestDaemon(MainJobTests.patient + web.entry())
    try daemon.wait("web", toBe: "foreground")
    let said = try daemon.done("warn", "web")
    #expect(said.hasPrefix("web freed "), "\(said)")
    #expect(try HTTPConnection(port: web.port).get("/sheds") == "1")
  }

  @Test("A shed command that hangs is ended at the deadline, and the worker is suspended")
  func deadline() throws {
    let scratch = try Scratch()
    let script = try scratch.write("hoarder.py", Self.hoarder)
    let pidFile = "\(scratch.path)/pid"
    let daemon = try TestDaemon(
      """
      policy_overrides: { background: { suspend_after: 100ms, shed_deadline: 400ms } }
      workers:
        hoarder:
          command: [\(TestMachine.python), \(script)]
          readiness: { log_line: ready }
          shed: { command: [sh, -c, "sleep 601 & echo $$ $! > \(pidFile); wait"] }
      """)
    try daemon.wait("hoarder", toBe: "foreground")
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

  @Test("`warn` refuses a worker that has no way to be asked, and names the missing key")
  func noChannel() throws {
    let daemon = try TestDaemon("workers: { sleeper: { command: sleep 603 } }")
    try daemon.wait("sleeper", toBe: "foreground")
    let outcome = try daemon.verb("warn", "sleeper")
    #expect(outcome.code == 1)
    #expect(outcome.error == "dormouse: sleeper can't be asked to free memory: configure `shed:`\n")
  }
}

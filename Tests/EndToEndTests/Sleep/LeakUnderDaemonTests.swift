import Control
import Linux
import TestSupport
import Testing

@Suite("A leak under a daemon") struct LeakUnderDaemonTests {
  /// An HTTP server that keeps 2 MB for each request.
  private static let leaker = """
    import http.server, os, sys
    kept = []
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            kept.append(os.urandom(2 << 20))
            self.send_response(200)
            self.send_header("Content-Length", "3")
            self.end_headers()
            self.wfile.write(b"ok\\n")
        def log_message(self, *_): pass
    http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
    """

  private func daemon(_ port: UInt16) throws -> TestDaemon {
    let script = Self.leaker.split(separator: "\n", omittingEmptySubsequences: false)
      .map { "        \($0)" }.joined(separator: "\n")
    return try TestDaemon(
      """
      policy_overrides:
        foreground: { mode: manual }
        background: { suspend_after: 1h, safe_point: { after_launch: 0s, after_wake: 0s } }
        hibernate: { enabled: false }
      on:
        leak_suspected: [sh, -c, "cat >> events"]
      workers:
        leaker:
          directory: /
          readiness: { tcp: \(port) }
          command:
          - \(TestMachine.python)
          - -c
          - |
      \(script)
          - "\(port)"

      """)
  }

  /// A request, which wakes the worker, and its suspension, which counts when the worker has been
  /// measured.
  private func use(_ daemon: TestDaemon, _ port: UInt16, times: Int) throws {
    for _ in 0..<times {
      try daemon.done("wake", "leaker")
      #expect(try HTTPConnection(port: port).get("/") == "ok")
      try daemon.done("suspend", "leaker")
      #expect(
        try eventually {
          let worker = try daemon.worker("leaker")
          return try #require(worker.measuredSecondsAgo) < worker.secondsInState
        })
    }
  }

  @Test("A worker that leaks at each request is suspected, with the evidence, once in a run")
  func suspected() throws {
    let port = try freePort()
    let daemon = try daemon(port)
    try daemon.wait("leaker", toBe: "foreground")
    try use(daemon, port, times: 8)
    #expect(try daemon.worker("leaker").leak == nil)

    let uses = try daemon.ask(.explain, "leaker").explanation?.activity?.uses

    // Another daemon continues with the same process.
    _ = try daemon.ask(.leave)
    #expect(try daemon.waitForEnd() == 0)
    try daemon.start()
    // Without a daemon it runs.
    try daemon.wait("leaker", toBe: "background")
    // The daemon that ended has woken it, which is no use.
    #expect(try daemon.ask(.explain, "leaker").explanation?.activity?.uses == uses)
    try use(daemon, port, times: 5)

    let leak = try #require(try daemon.worker("leaker").leak)
    #expect(leak.suspensions >= 12 && leak.footprint > leak.footprintBefore + 16 << 20)
    #expect(leak.bytesPerSuspension > 1 << 20 && leak.bytesPerSuspension < 4 << 20)
    #expect(leak.bytesPerDay == nil, "some seconds say nothing of a day")
    #expect(try daemon.done("status", "leaker").contains("suspected: its footprint"))
    #expect(try daemon.done("explain", "leaker").contains("Leak suspected: its footprint"))
    #expect(try daemon.done("metrics").contains("dormouse_worker_leak_suspected{"))
    let events = try daemon.done("events", "--worker", "leaker")
    #expect(events.contains("leak suspected: its footprint when it is suspended grew"), "\(events)")
    #expect(
      try eventually {
        (try? readText("\(daemon.scratch.path)/events"))?
          .contains("\"occasion\":\"leak_suspected\"") == true
      })
    #expect(try daemon.done("report").contains("leak suspected: leaker"))
    #expect(try daemon.done("replay").contains("every decision is the same as recorded"))

    try use(daemon, port, times: 2)
    try daemon.waitForLogText("leak suspected")
    let reports = daemon.logText.split(separator: "\n").count { $0.contains("leak suspected") }
    #expect(reports == 1, "\(daemon.logText)")
    try daemon.done("restart", "leaker")
    #expect(try daemon.worker("leaker").leak == nil)
  }
}

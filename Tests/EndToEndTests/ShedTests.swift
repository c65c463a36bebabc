import Control
import Glibc
import Linux
import Testing

@Suite("Shedding") struct ShedTests {
  /// 8 MB of cache, given up on SIGUSR1, and on nothing else.
  static let hoarder = """
    import ctypes, gc, os, signal
    cache = [bytearray(os.urandom(1 << 20)) for _ in range(8)]
    def shed(*_):
      cache.clear()
      gc.collect()
      ctypes.CDLL(None).malloc_trim(0)
    signal.signal(signal.SIGUSR1, shed)
    print("ready", flush=True)
    while True: signal.pause()
    """

  static func configuration(_ script: String, shed: String) -> String {
    """
    policy_overrides: { background: { suspend_after: 1h, shed_deadline: 3s } }
    workers:
      hoarder:
        command: [\(Surroundings.python), \(script)]
        readiness: { log_line: ready }
        shed: \(shed)
    """
  }

  @Test(
    "A signal or a command makes a worker give memory back, and it is measured",
    arguments: ["{ signal: USR1 }", #"{ command: [sh, -c, "kill -USR1 $DORMOUSE_WORKER_PID"] }"#])
  func measured(shed: String) throws {
    let scratch = try Scratch()
    let script = try scratch.write("hoarder.py", Self.hoarder)
    let daemon = try TestDaemon(Self.configuration(script, shed: shed))
    try daemon.wait("hoarder", toBe: "foreground")
    let before = try daemon.currentFootprint("hoarder")
    let said = try daemon.done("warn", "hoarder")
    #expect(said.hasPrefix("hoarder gave back "), "\(said)")
    #expect(try eventually { try daemon.worker("hoarder").footprint <= before - 7 << 20 })
    let status = try daemon.done("status", "hoarder")
    #expect(status.contains("gave back"), "\(status)")
    #expect(try daemon.done("warn", "hoarder").hasPrefix("hoarder gave nothing back"))
  }

  @Test("MEMORY_PRESSURE_WATCH is heard by a worker that listens, without any configuration")
  func watch() throws {
    let web = try WebWorker(megabytes: 1, cacheMegabytes: 8)
    let daemon = try TestDaemon(MainJobTests.patient + web.entry())
    try daemon.wait("web", toBe: "foreground")
    let said = try daemon.done("warn", "web")
    #expect(said.hasPrefix("web gave back "), "\(said)")
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
          command: [\(Surroundings.python), \(script)]
          readiness: { log_line: ready }
          shed: { command: [sh, -c, "sleep 601 & echo $$ $! > \(pidFile); wait"] }
      """)
    try daemon.wait("hoarder", toBe: "foreground")
    try daemon.done("suspend", "hoarder")
    let pids = try readText(pidFile).split { $0 == " " || $0 == "\n" }.compactMap { Int32($0) }
    #expect(pids.count == 2)
    #expect(try eventually { pids.allSatisfy { kill($0, 0) != 0 } })
    let status = try daemon.done("status", "hoarder")
    #expect(status.contains("did not answer in time"), "\(status)")
    #expect(try daemon.zombies().isEmpty)
  }

  @Test("A signal that nobody handles isn't sent, for it would end the worker")
  func unhandled() throws {
    let daemon = try TestDaemon(
      """
      policy_overrides: { background: { suspend_after: 1h } }
      workers: { sleeper: { command: sleep 602, shed: { signal: USR1 } } }
      """)
    try daemon.wait("sleeper", toBe: "foreground")
    let said = try daemon.done("warn", "sleeper")
    #expect(said.hasPrefix("sleeper gave nothing back"))
    try daemon.done("suspend", "sleeper")
    try daemon.done("wake", "sleeper")
    #expect(try daemon.worker("sleeper").state == "background")
    #expect(daemon.words.contains("none of its processes handles SIGUSR1"), "\(daemon.words)")
  }

  @Test("A worker that can't be told is refused a warning, with the reason")
  func noChannel() throws {
    let daemon = try TestDaemon("workers: { sleeper: { command: sleep 603 } }")
    try daemon.wait("sleeper", toBe: "foreground")
    let outcome = try daemon.verb("warn", "sleeper")
    #expect(outcome.code == 1)
    #expect(outcome.error == "dormouse: sleeper has no channel on which it could be warned\n")
  }
}

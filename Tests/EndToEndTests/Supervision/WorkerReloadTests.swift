import Control
import Glibc
import TestSupport
import Testing

@Suite("Workers that reload their configuration") struct WorkerReloadTests {
  /// On SIGHUP, sends RELOADING=1 and READY=1 (sd_notify(3)), and logs each reload.
  private static let program = """
    import os, signal, socket, sys, time
    out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    where = os.environ["NOTIFY_SOCKET"]
    where = "\\0" + where[1:] if where[0] == "@" else where
    say = lambda text: out.sendto(text.encode(), where)
    def reload(*_):
      if "silent" in sys.argv: print("reloaded", flush=True); return
      say("RELOADING=1\\nMONOTONIC_USEC=%d" % (time.monotonic_ns() // 1000))
      time.sleep(1.5)
      print("reloaded", flush=True)
      say("READY=1")
    signal.signal(signal.SIGHUP, reload)
    say("READY=1")
    # Not one long sleep: Python would handle a signal that comes just before it only afterwards.
    while True: time.sleep(0.2)
    """

  private func daemon(_ setting: Setting) throws -> TestDaemon {
    let daemon = try TestDaemon("", setting: setting, starts: false)
    let script = try daemon.scratch.write("program.py", Self.program)
    let workers = ["speaks", "silent"].map { name in
      "  \(name): { command: [\(TestMachine.python), \(script), \(name)], reload_signal: SIGHUP, "
        + "readiness: { notify: true } }\n"
    }
    try daemon.rewrite(BadWorkerTests.calm + "workers:\n" + workers.joined())
    try daemon.start()
    for name in ["speaks", "silent"] { try daemon.waitUntilRuns(name) }
    return daemon
  }

  private func log(_ daemon: TestDaemon, _ name: String) throws -> String {
    try daemon.done("logs", name)
  }

  @Test(
    "`reload` of a worker wakes it first and waits for its READY=1",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func waits(setting: Setting) throws {
    let daemon = try daemon(setting)
    #expect(try daemon.done("reload", "speaks") == "speaks has reloaded and is ready\n")
    #expect(try log(daemon, "speaks") == "reloaded\n")
    try daemon.done("hibernate", "speaks")
    #expect(try daemon.done("reload", "speaks") == "speaks has reloaded and is ready\n")
    #expect(try log(daemon, "speaks") == "reloaded\nreloaded\n")
    #expect(try daemon.worker("speaks").tasks.isEmpty)

    #expect(try daemon.done("reload", "silent") == "silent was sent SIGHUP to reload\n")
    #expect(try eventually { try log(daemon, "silent") == "reloaded\n" })
  }
}

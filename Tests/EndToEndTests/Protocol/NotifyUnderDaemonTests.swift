import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Workers that use sd_notify(3)") struct NotifyTests {
  /// Sends WATCHDOG=1 as often as sd_watchdog_enabled(3) wants it, until SIGUSR1 makes it hang.
  static let program = """
    import os, signal, socket, time
    print("last", os.environ.get("DORMOUSE_LAST_EXIT_STATUS"), flush=True)
    line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    path = os.environ["NOTIFY_SOCKET"]
    line.connect("\\0" + path[1:] if path[0] == "@" else path)
    hangs = []
    signal.signal(signal.SIGUSR1, lambda *_: hangs.append(1))
    assert os.environ["WATCHDOG_PID"] == str(os.getpid()), os.environ["WATCHDOG_PID"]
    print("every", os.environ["WATCHDOG_USEC"], flush=True)
    while True:
      if not hangs: line.send(b"WATCHDOG=1")
      time.sleep(int(os.environ["WATCHDOG_USEC"]) / 4e6)
    """

  @Test func `A worker that hangs is ended by SIGABRT and started again`() throws {
    let scratch = try Scratch()
    let path = try scratch.write("talker.py", Self.program)
    let daemon = try TestDaemon(
      """
      policy_overrides:
        background: { suspend_after: 1h }
        hibernate: { after: never }
      workers:
        talker:
          command: [\(TestMachine.python), \(path)]
          watchdog: 12s
          restart: { when: on-failure, backoff: { initial: 1s } }
      """)
    try daemon.wait("talker", toBe: "foreground")
    let first = try #require(try daemon.worker("talker").pid)
    try daemon.waitForWorkerLog("talker", "every 12000000")
    #expect(kill(first, SIGUSR1) == 0)
    try daemon.waitForLogText("no WATCHDOG=1 for 12 s")
    let isBack = try eventually(within: .seconds(60)) {
      let now = try daemon.worker("talker")
      return now.state == "foreground" && now.pid != first
    }
    #expect(isBack, "\(daemon.logText)")
    let past = try #require(try daemon.worker("talker").exits?.last)
    #expect(past.why.text.contains("no WATCHDOG=1 for 12 s"), "\(past)")
    try daemon.waitForWorkerLog("talker", "last \(128 + SIGABRT)")
  }
}

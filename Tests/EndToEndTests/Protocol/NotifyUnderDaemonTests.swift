import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Workers that use sd_notify(3)") struct NotifyTests {
  /// Sends WATCHDOG=1 as often as sd_watchdog_enabled(3) wants it, until SIGUSR1 makes it hang.
  static let program = """
    import os, signal, socket, sys, time
    print("environment", sorted(k for k in os.environ
      if k in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "DORMOUSE_RUN")), flush=True)
    print("last", os.environ.get("DORMOUSE_LAST_EXIT_STATUS"), flush=True)
    if "NOTIFY_SOCKET" in os.environ:
      line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
      path = os.environ["NOTIFY_SOCKET"]
      line.connect("\\0" + path[1:] if path[0] == "@" else path)
      say = lambda text: line.send(text.encode())
    hangs = []
    signal.signal(signal.SIGUSR1, lambda *_: hangs.append(1))
    if "WATCHDOG_USEC" in os.environ:
      assert os.environ["WATCHDOG_PID"] == str(os.getpid()), os.environ["WATCHDOG_PID"]
      pause = int(os.environ["WATCHDOG_USEC"]) / 4e6
      print("every", os.environ["WATCHDOG_USEC"], flush=True)
    else: pause = 600
    for word in sys.argv[1:]: say(word)
    while True:
      if pause < 600 and not hangs: say("WATCHDOG=1")
      time.sleep(pause)
    """

  private func daemon(
    _ keys: String, arguments: String = "", overrides: String = "", _ scratch: Scratch
  ) throws -> TestDaemon {
    let path = try scratch.write("talker.py", Self.program)
    return try TestDaemon(
      """
      policy_overrides:
        background: { suspend_after: 1h }
        hibernate: { after: never }
      workers:
        talker: { command: [\(TestMachine.python), \(path)\(arguments)]\(keys) }
      """)
  }

  @Test(
    "Only a worker whose configuration asks for it gets NOTIFY_SOCKET",
    arguments: [
      ("", false), (", shed: { notify: true }", false), (", notify: true", true),
      (", watchdog: 1m", true),
    ])
  func variable(keys: String, has: Bool) throws {
    let scratch = try Scratch()
    let daemon = try daemon(keys, scratch)
    try daemon.wait("talker", toBe: "foreground")
    try daemon.waitForWorkerLog("talker", "environment")
    let log = daemon.workerLog("talker")
    #expect(log.contains("NOTIFY_SOCKET") == has, "\(log)")
    #expect(log.contains("DORMOUSE_RUN"))
  }

  @Test func `A worker that hangs is ended by SIGABRT and started again`() throws {
    let scratch = try Scratch()
    let daemon = try daemon(
      ", watchdog: 12s, restart: { when: on-failure, backoff: { initial: 1s } }", scratch)
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

  @Test func `WATCHDOG=trigger ends a worker at once`() throws {
    let scratch = try Scratch()
    let daemon = try daemon(", notify: true", arguments: ", \"WATCHDOG=trigger\"", scratch)
    try daemon.wait("talker", toBe: "terminated")
    #expect(try daemon.worker("talker").reason.text == "it sent WATCHDOG=trigger")
  }
}

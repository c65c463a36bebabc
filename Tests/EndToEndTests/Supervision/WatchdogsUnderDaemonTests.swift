import Control
import Glibc
import TestSupport
import Testing

@Suite("Watchdogs, holds and heartbeats of real workers") struct WatchdogTests {
  /// Sends messages to the daemon as sd_notify(3) does.
  private static let talk = """
    import os, signal, socket, time
    line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    path = os.environ["NOTIFY_SOCKET"]
    line.connect("\\0" + path[1:] if path[0] == "@" else path)
    say = lambda text: line.send(text.encode())

    """

  private func daemon(
    _ overrides: String, _ script: String, worker: String = "", _ scratch: Scratch
  ) throws -> TestDaemon {
    let path = try scratch.write("talker.py", Self.talk + script)
    return try TestDaemon(
      """
      policy_overrides: { \(overrides) }
      workers:
        talker: { command: [\(TestMachine.python), \(path)], readiness: { notify: true }\(worker) }
      """)
  }

  @Test("A worker that asks for more time with EXTEND_TIMEOUT_USEC gets it before it is ready")
  func moreTime() throws {
    let scratch = try Scratch()
    let daemon = try daemon(
      "watchdog: { launch: 8s }",
      """
      say("EXTEND_TIMEOUT_USEC=60000000")
      time.sleep(9)
      say("READY=1")
      time.sleep(600)
      """, scratch)
    try daemon.wait("talker", toBe: "foreground", within: .seconds(60))
  }

  @Test("X_DORMOUSE_HOLD keeps a worker awake, and `explain` says so")
  func keepAwake() throws {
    let scratch = try Scratch()
    let daemon = try daemon(
      "background: { suspend_after: 1s }, hibernate: { after: never }",
      """
      signal.signal(signal.SIGUSR2, lambda *_: say("X_DORMOUSE_HOLD=0"))
      say("X_DORMOUSE_HOLD=1\\nREADY=1")
      # Not one long sleep: Python would handle a signal that comes just before it only afterwards.
      while True: time.sleep(0.2)
      """, scratch)
    try daemon.wait("talker", toBe: "foreground")
    try daemon.done("background", "talker")
    let isHeld = try eventually {
      let report = try daemon.json(ExplanationReport.self, "explain", "talker")
      return report.obstacles.map(\.key) == ["background.safe_point.hold"]
    }
    #expect(isHeld)
    #expect(kill(try #require(try daemon.worker("talker").pid), SIGUSR2) == 0)
    try daemon.wait("talker", toBe: "suspended")
  }

  @Test("A sleeping worker runs briefly when its heartbeat is due, and then sleeps again")
  func heartbeat() throws {
    let scratch = try Scratch()
    let daemon = try daemon(
      "background: { suspend_after: 1h, heartbeat: { every: 1s, for: 500ms } }, "
        + "hibernate: { after: never }",
      """
      say("READY=1")
      time.sleep(600)
      """, scratch)
    try daemon.wait("talker", toBe: "foreground")
    try daemon.done("suspend", "talker")
    try daemon.waitForLogText("resuming → background: heartbeat due")
    try daemon.waitForLogText("suspending → suspended: heartbeat due")
  }
}

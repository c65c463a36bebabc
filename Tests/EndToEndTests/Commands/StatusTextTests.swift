import Control
import TestSupport
import Testing

@Suite("Status texts of workers") struct StatusTextTests {
  @Test("`ps` shows why a worker has no processes, and what its sleep has saved")
  func states() throws {
    let python = TestMachine.python
    let daemon = try TestDaemon(
      """
      policy_overrides:
        watchdog: { launch: 1h }  # `db` launches for as long as a busy machine needs for the others
      workers:
        fine: { command: ["true"], restart: { when: no } }
        bad: { command: [sh, -c, exit 3], restart: { when: no } }
        again: { command: [sh, -c, exit 4], restart: { when: always, backoff: { initial: 300s, \
      max: 300s } } }
        later: { command: [sleep, "600"], autostart: false }
        away: { command: [sleep, "600"] }
        db: { command: [sleep, "600"], readiness: { log_line: never } }
        web: { command: [sleep, "600"], depends_on: { db: ready } }
        idle: { command: [\(python), -c, "import time; b = bytearray(8000000); time.sleep(600)"] }
      """)
    try daemon.wait("idle", toBe: "foreground")
    try daemon.done("stop", "away")
    try daemon.done("hibernate", "idle")
    try daemon.done("wake", "idle")
    try daemon.done("hibernate", "idle")
    let expected = [
      "fine": "exited 0", "bad": "failed 3", "later": "never started", "away": "stopped",
      "db": "launching", "web": "waiting for db",
      // Its own timer, which sleep(3) has, is stopped.
      "idle": "hibernated !",
    ]
    for (name, text) in expected {
      var last = ""
      let isShown = try eventually {
        last = try ShownState(of: daemon.worker(name)).text
        return last == text
      }
      #expect(isShown, "\(name) is \(last)")
    }
    #expect(try ShownState(of: daemon.worker("again")).text.hasPrefix("backing off "))
    let table = try daemon.done("ps")
    for text in expected.values { #expect(table.contains(text), "\(table)") }
    #expect(table.contains("1 resume (p50 "), "\(table)")
    #expect(table.contains("today: asleep "), "\(table)")
    let status = try daemon.done("status", "idle")
    #expect(status.contains("7 days: "), "\(status)")
  }
}

import Control
import Linux
import TestSupport
import Testing

@Suite("A notice before a termination under a daemon") struct TerminationNoticeUnderDaemonTests {
  @Test("A notice is shown; a veto keeps the worker, and without one it is terminated and reported")
  func notice() throws {
    let daemon = try TestDaemon(
      """
      policy_overrides:
        background: { suspend_after: never }
        terminate: { ask: 15s }
      on:
        will_terminate: [sh, -c, "cat >> notices"]
      workers:
        large:
          directory: /
          command: [\(TestMachine.python), -c, "x = bytearray(30 << 20); import time; \
      time.sleep(673)"]

      """)
    try daemon.wait("large", toBe: "foreground")
    try daemon.done("background", "large")
    #expect(try eventually { try daemon.worker("large").footprint > 20 << 20 })
    try daemon.done("pressure", "set", "critical", "--for", "10m", "--yes")
    #expect(try eventually { try daemon.worker("large").notice != nil }, "\(daemon.logText)")
    #expect(try daemon.done("ps").contains("will be terminated in"))
    try daemon.done("protect", "large")
    try daemon.waitForLogText("not terminated: vetoed: protected on request")
    #expect(try daemon.worker("large").notice == nil)
    #expect(try daemon.done("events").contains("vetoed"))

    try daemon.done("protect", "--off", "large")
    try daemon.wait("large", toBe: "terminated")
    try daemon.done("pressure", "set", "auto")
    #expect(try eventually { try daemon.verb("jetsam").output.contains("no veto in 15 s") })
    let notices = "\(daemon.scratch.path)/notices"
    #expect(
      try eventually { (try? readText(notices))?.contains("\"occasion\":\"notice\"") == true })
  }
}

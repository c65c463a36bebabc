import Testing

@Suite("Heartbeats of real workers") struct HeartbeatUnderDaemonTests {
  @Test("A sleeping worker runs briefly when its heartbeat is due, and then sleeps again")
  func heartbeat() throws {
    let daemon = try TestDaemon(
      """
      policy_overrides:
        background: { suspend_after: 1h, heartbeat: { every: 1s, for: 500ms } }
        hibernate: { after: never }
      workers: { quiet: { command: sleep 600 } }
      """)
    try daemon.wait("quiet", toBe: "foreground")
    try daemon.done("suspend", "quiet")
    try daemon.waitForLogText("resuming → background: heartbeat due")
    try daemon.waitForLogText("suspending → suspended: heartbeat due")
  }
}

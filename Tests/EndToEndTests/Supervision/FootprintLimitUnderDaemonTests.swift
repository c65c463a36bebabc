import Control
import Linux
import TestSupport
import Testing

@Suite("Limits of the footprint under a daemon") struct FootprintLimitUnderDaemonTests {
  /// Grows to 90 MB in steps, rests, and says that it ends.
  private static let grower = """
    import os, signal, sys, time
    def end(*_):
        print("bye", flush=True)
        sys.exit(0)
    signal.signal(signal.SIGTERM, end)
    kept = []
    for _ in range(30):
        kept.append(os.urandom(3 << 20))
        time.sleep(0.02)
    # Not one long sleep: Python would handle a signal that comes just before it only afterwards.
    while True: time.sleep(0.2)
    """

  private func daemon(_ limits: String) throws -> TestDaemon {
    let script = Self.grower.split(separator: "\n", omittingEmptySubsequences: false)
      .map { "        \($0)" }.joined(separator: "\n")
    return try TestDaemon(
      """
      policy_overrides:
        foreground: { mode: manual }
        background: { suspend_after: 1h, safe_point: { after_launch: 0s } }
        hibernate: { max_footprint: unlimited, after: never, only_if_faster_than_relaunch: false }
        terminate: { grace: 60s }
      on:
        over_limit: [sh, -c, "cat >> events"]
      workers:
        grower:
          directory: /
          limits: { footprint: \(limits) }
          command:
          - \(TestMachine.python)
          - -c
          - |
      \(script)

      """)
  }

  @Test("A growing worker is restarted in an orderly way, with the reason, and not in a loop")
  func restarted() throws {
    let daemon = try daemon("{ warn: 20MB, restart: 40MB, sustained_for: 1s }")
    try daemon.wait("grower", toBe: "foreground")
    let first = try #require(try daemon.worker("grower").pid)
    try daemon.done("background", "grower")
    #expect(
      try eventually {
        let worker = try daemon.worker("grower")
        return worker.state == "background" && worker.pid != first && worker.pid != nil
      }, "\(daemon.logText)")
    let worker = try daemon.worker("grower")
    #expect(worker.reason.code == "restarted_for_footprint")
    #expect(worker.reason.text.contains("over limits.footprint.restart 40 MB for"))
    #expect(worker.footprintLimits?.restarts == 1)
    #expect(try daemon.done("logs", "grower").contains("bye"))
    try daemon.waitForLogText("over limits.footprint.warn 20 MB for")
    try daemon.waitForLogText("configure `shed:`")
    let explained = try daemon.done("explain", "grower")
    #expect(explained.contains("limits.footprint.restart"), "\(explained)")
    // It is over the limit again soon, and the next restart waits for a minute.
    #expect(
      try eventually {
        try daemon.worker("grower").footprint > 60 << 20
      })
    #expect(try daemon.worker("grower").footprintLimits?.restarts == 1)
    let events = try daemon.done("events", "--worker", "grower")
    #expect(events.contains("restarted: footprint"), "\(events)")
  }

  @Test("A worker over `hibernate` is hibernated before its idle times, and a hook gets the event")
  func hibernated() throws {
    let daemon = try daemon("{ hibernate: 40MB, sustained_for: 1s }")
    try daemon.wait("grower", toBe: "foreground")
    try daemon.done("background", "grower")
    try daemon.wait("grower", toBe: "hibernated")
    let worker = try daemon.worker("grower")
    #expect(worker.reason.code == "footprint_limit", "\(worker.reason)")
    #expect(worker.footprint < 20 << 20)
    try daemon.waitForLogText("hibernated as soon as it isn't in use")
    // The file isn't there before the command has run.
    #expect(
      try eventually {
        (try? readText("\(daemon.scratch.path)/events"))?.contains("\"occasion\":\"limit\"") == true
      })
  }
}

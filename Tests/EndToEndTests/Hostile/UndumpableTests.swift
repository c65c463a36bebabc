import Testing

@Suite("Workers that aren't dumpable") struct UndumpableTests {
  @Test(
    "`hibernate` of a worker that isn't dumpable is refused, and the worker continues to run",
    .enabled(if: TestMachine.canBecomeNobody, "only root can be two users"))
  func answer() throws {
    // PR_SET_DUMPABLE closes /proc/PID/smaps_rollup and mem to all users but root.
    // The program prints `closed` after that; earlier measurements work as usual.
    let program =
      "import ctypes, time; ctypes.CDLL(None).prctl(4, 0); print('closed', flush=True); "
      + "time.sleep(600)"
    let daemon = try TestDaemon(
      """
      policy_overrides:
        background: { suspend_after: 1h }
        hibernate: { after: never, cooldown: 0s }
      workers:
        shy:
          command: [\(TestMachine.python), -c, "\(program)"]
          readiness: { log_line: closed }

      """, setting: .ordinaryUser)
    try daemon.wait("shy", toBe: "foreground")
    try daemon.waitForLogText("shy: footprint is an estimate")
    let answer = try daemon.ask(.hibernate, "shy")
    #expect(answer.result != .done && answer.text != "", "\(answer)")
    try daemon.wait("shy", toBe: "suspended")
    try daemon.done("foreground", "shy")
    // It is logged once only.
    #expect(daemon.logText.split(separator: "footprint is an estimate").count == 2)
  }
}

import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Schedules") struct ScheduleTests {
  private static func configuration(_ line: String) -> String {
    WakeTests.manual + """
        job:
          command: [sleep, "1000"]
          wake_at: "\(line)"

      """
  }

  // On each push `ScheduleMonitorTests` shows it without waiting for a minute.
  @Test(
    "A schedule wakes a sleeping worker at its minute, and a reload doesn't postpone it",
    .enabled(if: Nightly.runs, "only in make test-all"))
  func minute() throws {
    // The minute mustn't end between the suspension and the look at the next wake.
    #expect(try eventually(within: .seconds(60)) { time(nil) % 60 < 30 })
    let daemon = try TestDaemon(Self.configuration("* * * * *"))
    try daemon.wait("job", toBe: "foreground")
    try daemon.done("suspend", "job")
    let next = try #require(try daemon.worker("job").nextWake)
    #expect(next % 60 == 0)
    #expect(next >= Int64(time(nil)))
    try daemon.done("reload")
    #expect(try daemon.worker("job").nextWake ?? 0 >= next)
    try daemon.wait("job", toBe: "background", within: .seconds(80))
    #expect(Int64(time(nil)) >= next)
    try daemon.waitForLogText("its schedule (* * * * *)")
  }
}

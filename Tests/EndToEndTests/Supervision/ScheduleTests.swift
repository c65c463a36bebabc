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

  @Test("A schedule wakes a sleeping worker at its minute, and a reload doesn't postpone it")
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

  @Test(
    .enabled(
      if: TestMachine.hasCgroups, "without cgroups a new daemon wakes all sleepers in any case"))
  func `A scheduled wake that was due while no daemon ran happens once at the next start`() throws {
    let daemon = try TestDaemon(Self.configuration("0 0 1 1 *"), setting: .frozen)
    try daemon.wait("job", toBe: "foreground")
    try daemon.done("suspend", "job")
    let plan = "\(daemon.state)/schedule"
    #expect(try readText(plan).hasSuffix(" job\n"))
    try daemon.crash()
    // Sets the due time into the past, as if it had come while no daemon ran.
    let file = try Descriptor.open(plan, O_WRONLY | O_TRUNC)
    try file.writeAll("1000000000 job\n")
    try daemon.start()
    try daemon.wait("job", toBe: "background")
    #expect(try eventually { try readText(plan).hasPrefix("1000000000") == false })
    try daemon.done("suspend", "job")
    try daemon.crash()
    try daemon.start()
    let wakes = daemon.logText.split(separator: "\n").filter {
      $0.contains("→ resuming: ") && $0.contains("its schedule (0 0 1 1 *)")
    }
    #expect(wakes.count == 1, "\(daemon.logText)")
  }
}

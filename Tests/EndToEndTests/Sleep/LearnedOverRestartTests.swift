import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Knowledge that the next daemon inherits") struct MemoryTests {
  private static let configuration =
    BadWorkerTests.calm + """
      workers:
        web: { command: [sh, -c, "env | grep ^DORMOUSE_LAST; echo up; exec sleep 658"], \
      readiness: { log_line: up }, autostart: false }

      """

  @Test("The next daemon knows launch times and past exits, and passes the last exit to the worker")
  func survives() throws {
    let daemon = try TestDaemon(Self.configuration)
    try daemon.done("start", "web")
    let cost = try #require(try daemon.worker("web").launchSeconds)
    try daemon.done("shutdown")
    #expect(try daemon.waitForEnd() == 0)

    try daemon.start()
    let report = try daemon.worker("web")
    #expect(report.launchSeconds == cost && report.exits?.count == 1)
    #expect(report.exits?.last?.why.text == "stopped on request")
    try daemon.done("start", "web")
    let log = try daemon.done("logs", "web")
    #expect(log.contains("DORMOUSE_LAST_EXIT=stopped on request\n"), "\(log)")
    #expect(log.contains("DORMOUSE_LAST_EXIT_STATUS=143\n"), "\(log)")
  }

  @Test(
    "`explain` counts the uses that earlier daemons saw, and `protect --for` holds over a restart")
  func usesAndProtection() throws {
    let daemon = try TestDaemon(Self.configuration)
    try daemon.done("start", "web")
    // Uses that follow each other within 5 s are one; a busy machine may take longer for the two
    // verbs.
    try daemon.done("foreground", "web")
    let before = try #require(try daemon.ask(.explain, "web").explanation?.activity)
    #expect((1...2).contains(before.uses))
    let answer = try daemon.done("protect", "web", "--for", "10m")
    #expect(answer == "web is protected for 10 m: it isn't terminated for lack of memory\n")
    try daemon.done("shutdown")
    #expect(try daemon.waitForEnd() == 0)

    try daemon.start()
    let after = try #require(try daemon.ask(.explain, "web").explanation)
    #expect(after.activity?.uses == before.uses && after.activity?.last == before.last)
    #expect(after.activity.map { $0.overSeconds > before.overSeconds } == true)
    #expect(after.protection?.code == "protected_by_request")
    #expect(after.protectedSeconds.map { $0 > 400 && $0 < 600 } == true)
    for arguments in [["ps"], ["status", "web"], ["explain", "web"]] {
      let shown = try daemon.enter(arguments).output
      // The restart has taken a part of the 10 minutes.
      #expect(shown.contains(/for (10|9) m.* more/), "\(shown)")
    }
    try daemon.done("protect", "--off", "web")
    #expect(try daemon.worker("web").protection == nil)

    try daemon.done("protect", "web", "--for", "1s")
    #expect(try eventually { try daemon.worker("web").protection == nil })
  }

  @Test("`protect --for` refuses a time that makes no sense in one sentence, with exit code 64")
  func badTimes() throws {
    let daemon = try TestDaemon(Self.configuration)
    for time in ["0", "-5m", "31d", "soon"] {
      let refused = try daemon.verb("protect", "web", "--for=\(time)")
      #expect(refused.code == 64 && refused.error.split(separator: "\n").count == 1, "\(refused)")
    }
    #expect(try daemon.worker("web").protection == nil)
    let both = try daemon.verb("protect", "web", "--off", "--for", "5m")
    #expect(both.code == 64, "\(both)")
  }
}

import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Knowledge that the next daemon inherits") struct MemoryTests {
  private static let configuration =
    BadWorkerTests.calm + """
      workers:
        web: { command: [sh, -c, "env | grep ^DORMOUSE_LAST; echo up; exec sleep 658"], readiness: { log_line: up }, autostart: false }

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
    "After a kill, the next daemon notes workers that ended meanwhile; a damaged memory file is only logged"
  )
  func killedAndDamaged() throws {
    let daemon = try TestDaemon(Self.configuration)
    try daemon.done("start", "web")
    let pid = try #require(try daemon.worker("web").pid)
    try daemon.crash()
    kill(pid, SIGKILL)
    #expect(try eventually { hasEnded(pid) })
    try daemon.start()
    #expect(try daemon.worker("web").exits?.last?.why.text == "ended while no daemon was running")
    try daemon.done("shutdown")
    #expect(try daemon.waitForEnd() == 0)

    let path = "\(daemon.state)/memory"
    let file = try Descriptor.open(path, O_WRONLY)
    #expect(pwrite(file.raw, "\0", 1, 40) == 1)
    try daemon.start()
    try daemon.waitForWords("memory is damaged")
    #expect(try daemon.worker("web").exits == nil)
    try daemon.done("start", "web")
  }
}

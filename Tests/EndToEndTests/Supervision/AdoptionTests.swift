import Glibc
import Linux
import TestSupport
import Testing

@Suite("A daemon that finds less than the last one left") struct AdoptionTests {
  private func hibernated(
    _ web: WebWorker, _ setting: Setting
  ) throws -> (daemon: TestDaemon, pid: Int32) {
    let daemon = try TestDaemon(MainJobTests.patient + web.entry(setting), setting: setting)
    try daemon.wait("web", toBe: "foreground")
    try daemon.done("hibernate", "web")
    let pid = try #require(try daemon.worker("web").pid)
    try daemon.crash()
    return (daemon, pid)
  }

  @Test("The next daemon resumes a hibernated worker although its sockets were removed")
  func withoutSockets() throws {
    let web = try WebWorker(megabytes: 1)
    let (daemon, pid) = try hibernated(web, .traced)
    // As a program does that cleans up old files.
    let sockets = daemon.socket + ".workers"
    for name in try listDirectory(sockets) { unlink("\(sockets)/\(name)") }
    #expect(rmdir(sockets) == 0)
    try daemon.start()
    try daemon.done("foreground", "web")
    #expect(try daemon.worker("web").pid == pid)
    #expect(try HTTPConnection(port: web.port).get("/count") == "1")
  }

  @Test(
    "The next daemon terminates a hibernated worker without an image, and never lets it run",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func withoutImage(setting: Setting) throws {
    let web = try WebWorker(megabytes: 1)
    let (daemon, pid) = try hibernated(web, setting)
    #expect(unlink("\(daemon.state)/images/web.image") == 0)
    try daemon.start()
    try daemon.wait("web", toBe: "terminated")
    #expect(try eventually { hasEnded(pid) })
    try daemon.waitForLogText("its image \(daemon.state)/images/web.image does not exist")
    // It was killed, and didn't end by an access to missing memory.
    #expect(!daemon.logText.contains("SIGSEGV") && !daemon.logText.contains("signal 11"))
  }

  @Test("A worker whose cgroup is missing isn't started a second time, and its image stays")
  func withoutCgroup() throws {
    let web = try WebWorker(megabytes: 1)
    let (daemon, pid) = try hibernated(web, .traced)
    let record = "\(daemon.state)/workers/web.worker"
    let whole = try readText(record)
    try rewrite(record, recordText(whole, setting: ["cgroup": "/proc/nowhere"]))
    try daemon.start()
    #expect(try eventually { daemon.logText.contains("web: can't be adopted") })
    try daemon.wait("web", toBe: "terminated")
    let outcome = try daemon.verb("start", "web")
    #expect(outcome.code != 0)
    #expect(outcome.error.contains("kill -9 \(pid)"), "\(outcome)")
    #expect(try listDirectory("\(daemon.state)/images") == ["web.image"])

    try daemon.crash()
    try rewrite(record, whole)
    try daemon.start()
    try daemon.done("foreground", "web")
    #expect(try daemon.worker("web").pid == pid)
    #expect(try HTTPConnection(port: web.port).get("/count") == "1")
  }

  @Test func `The image of a worker with a damaged record isn't removed`() throws {
    let web = try WebWorker(megabytes: 1)
    let (daemon, pid) = try hibernated(web, .traced)
    let record = "\(daemon.state)/workers/web.worker"
    let whole = try readText(record)
    try rewrite(record, String(whole.dropLast(3)))
    // No worker is declared, so that none takes the name.
    try daemon.rewrite("workers: {}\n")
    try daemon.start()
    #expect(try eventually { daemon.logText.contains("web.worker is damaged") })
    #expect(try listDirectory("\(daemon.state)/images") == ["web.image"])
    try daemon.crash()
    try rewrite(record, whole)
    try daemon.start()
    try daemon.done("foreground", "web")
    #expect(try daemon.worker("web").pid == pid)
    #expect(try HTTPConnection(port: web.port).get("/count") == "1")
  }

  private func rewrite(_ path: String, _ text: String) throws {
    let file = try Descriptor.open(path, O_WRONLY | O_TRUNC)
    try file.writeAll(text)
  }
}

import Control
import Linux
import TestSupport
import Testing

@Suite("Waking a chain of workers") struct WakeTogetherTests {
  @Test(
    "A connection to the front worker wakes the database behind it, and a reload can end that",
    arguments: Nightly.one(of: Setting.available))
  func frontAndDatabase(setting: Setting) throws {
    let web = try WebWorker(megabytes: 2, more: "wake_with: [db]")
    let db = try WebWorker(megabytes: 2, name: "db")
    let policy = WakeTests.manual.replacing(
      "background:", with: "foreground: { max: unlimited }\n  background:")
    let daemon = try TestDaemon(policy + web.entry(setting) + db.entry(setting), setting: setting)
    for name in ["web", "db"] { try daemon.wait(name, toBe: "foreground") }
    let digest = try HTTPConnection(port: db.port).get("/digest")
    for worker in [web, db] { try worker.waitForItsReads() }
    try putToSleep(daemon)
    #expect(try daemon.done("explain", "db").contains("web wakes (`wake_with`)"))

    // Only web is called.
    #expect(try HTTPConnection(port: web.port).get("/count") == "1")
    for name in ["web", "db"] { try daemon.wait(name, toBe: "background") }
    try daemon.waitForLogText("db: hibernated → resuming: woken with web")
    #expect(try daemon.worker("db").reason.code == "woken_with")
    #expect(try daemon.done("events", "--worker", "db").contains("woken with web"))
    #expect(try HTTPConnection(port: db.port).get("/digest") == digest)

    let changed = try readText(daemon.configuration).replacing("wake_with: [db]", with: "")
    try daemon.rewrite(changed)
    #expect(try daemon.done("reload").contains("web: wake_with"))
    for worker in [web, db] { try worker.waitForItsReads() }
    try putToSleep(daemon)
    #expect(try HTTPConnection(port: web.port).get("/count") == "2")
    try daemon.wait("web", toBe: "background")
    #expect(try daemon.worker("db").state == "hibernated")
  }

  private func putToSleep(_ daemon: TestDaemon) throws {
    for name in ["web", "db"] {
      try daemon.done("hibernate", name)
      try daemon.expectSleep(name, "hibernated")
    }
  }
}

import Control
import Glibc
import TestSupport
import Testing

@Suite("A configuration that a running worker doesn't have yet") struct PendingConfigurationTests {
  @Test("`status` shows a configuration that isn't applied yet, and `reload --restart` applies it")
  func restarted() throws {
    let before = "workers: { web: { command: sleep 672 }, other: { command: sleep 673 } }\n"
    let daemon = try TestDaemon(before)
    try daemon.bringToFront("other", among: ["web", "other"])
    let other = try daemon.worker("other").pid
    try daemon.rewrite(before.replacing("672", with: "674"))
    try daemon.done("reload")
    let web = try daemon.worker("web")
    #expect(web.command == ["sleep", "672"] && web.changedSinceLaunch == ["command"])
    let status = try daemon.done("status", "web")
    #expect(status.contains("`dormouse restart web` applies it"), "\(status)")
    #expect(try daemon.done("reload", "--restart").hasSuffix("web: restarted\n"))
    let after = try daemon.worker("web")
    #expect(after.command == ["sleep", "674"] && after.changedSinceLaunch == nil)
    #expect(after.pid != web.pid)
    #expect(try daemon.worker("other").pid == other)
  }
}

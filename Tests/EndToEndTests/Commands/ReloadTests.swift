import Control
import Glibc
import TestSupport
import Testing

@Suite("Reloads of the configuration") struct ReloadTests {
  private static let before = """
    workers:
      stays: { command: sleep 100001 }
      leaves: { command: sleep 100002 }

    """

  private static func putBehind(_ daemon: TestDaemon) throws {
    try daemon.bringToFront("leaves", among: ["stays", "leaves"])
    try daemon.wait("stays", toBe: "background")
  }

  @Test("`reload` applies changed keys at once, starts added workers and stops removed ones")
  func applied() throws {
    let daemon = try TestDaemon(Self.before)
    try Self.putBehind(daemon)
    let pid = try daemon.worker("stays").pid
    try daemon.rewrite(
      """
      policy_overrides: { foreground: { max: unlimited } }
      workers:
        stays: { command: sleep 100003, importance: 7 }
        comes: { command: sleep 100004 }

      """)
    let summary = try daemon.done("reload")
    #expect(summary.contains("leaves removed"))
    #expect(summary.contains("comes added"))
    #expect(summary.contains("(command from its next start on)"))
    try daemon.wait("comes", toBe: "foreground")
    let stays = try daemon.worker("stays")
    #expect(stays.pid == pid && stays.importance == 7)
    #expect(try eventually { try daemon.verb("status", "leaves").code == 3 })
  }

  @Test("`reload` reads the files again that the policy extends, under the same overrides")
  func extended() throws {
    let text = """
      policy: ./mine.yaml
      policy_overrides: { hibernate: { cooldown: 7s } }
      workers:
        stays: { command: sleep 100001 }

      """
    let daemon = try TestDaemon("workers: { stays: { command: sleep 100001 } }\n")
    _ = try daemon.scratch.write(
      "base.yaml", "extends: ios-5\nhibernate: { after: 41s, cooldown: 1s }\n")
    _ = try daemon.scratch.write("mine.yaml", "extends: ./base.yaml\n")
    try daemon.rewrite(text)
    #expect(try daemon.done("reload").hasPrefix("policy ios-5 → mine (2 values)"))
    _ = try daemon.scratch.write(
      "base.yaml", "extends: ios-5\nhibernate: { after: 42s, cooldown: 2s }\n")
    #expect(try daemon.done("reload") == "policy mine: hibernate.after 41s → 42s\n")
    let shown = try daemon.done("policy", "show", "--effective")
    #expect(shown.contains("base.yaml:2") && shown.contains("dormouse.yaml:2 (override)"))
    _ = try daemon.scratch.write("base.yaml", "extends: ./mine.yaml\n")
    let outcome = try daemon.verb("reload")
    #expect(outcome.code == 1 && outcome.error.contains("base.yaml:1:10: error: `extends` makes a"))
    #expect(try daemon.done("policy", "show", "--effective").contains("base.yaml:2"))
  }
}

import Control
import Linux
import Testing

@Suite("A configuration that is read again") struct ReloadTests {
  private static let before = """
    workers:
      stays: { command: sleep 100001 }
      goes: { command: sleep 100002 }

    """

  @Test("applies at once what it can, starts who is new and stops who is gone")
  func applied() throws {
    let daemon = try TestDaemon(Self.before)
    try daemon.wait("stays", toBe: "background")
    let pid = try daemon.worker("stays").pid
    _ = try daemon.scratch.write(
      "dormouse.yaml",
      """
      policy_overrides: { foreground: { max: unlimited } }
      workers:
        stays: { command: sleep 100003, importance: 7 }
        comes: { command: sleep 100004 }

      """)
    let summary = try daemon.done("reload")
    #expect(summary.contains("goes removed"))
    #expect(summary.contains("comes added"))
    #expect(summary.contains("(command when it is started next)"))
    try daemon.wait("comes", toBe: "foreground")
    let stays = try daemon.worker("stays")
    #expect(stays.pid == pid && stays.importance == 7)
    #expect(try eventually { try daemon.verb("status", "goes").code == 3 })
  }

  @Test("changes nothing when it has an error, and says where")
  func refused() throws {
    let daemon = try TestDaemon(Self.before)
    try daemon.wait("stays", toBe: "background")
    _ = try daemon.scratch.write("dormouse.yaml", Self.before + "polcy: ios-5\n")
    let outcome = try daemon.verb("reload")
    #expect(outcome.code == 1)
    #expect(outcome.error.contains("error: unknown key `polcy`"))
    #expect(outcome.error.contains("did you mean `policy`?"))
    #expect(try daemon.worker("goes").pid != nil)
  }
}

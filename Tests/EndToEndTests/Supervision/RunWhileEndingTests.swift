import Control
import Glibc
import Testing

@Suite("A daemon that is ending") struct RunWhileEndingTests {
  @Test func `A daemon that is ending refuses to run a new worker`() throws {
    let daemon = try TestDaemon(
      """
      policy_overrides: { terminate: { grace: 1h } }
      workers:
        stubborn: { command: [sh, -c, "trap 'echo no' TERM; while :; do sleep 0.05; done"] }

      """)
    try daemon.wait("stubborn", toBe: "foreground")
    kill(daemon.pid, SIGTERM)
    try daemon.wait("stubborn", toBe: "terminating")
    let outcome = try daemon.verb("run", "late", "--", "sleep", "600")
    #expect(outcome.code != 0)
    #expect(outcome.error.contains("the daemon is ending"), "\(outcome)")
    #expect(try daemon.ask(.ps).workers?.map(\.name) == ["stubborn"])
  }
}

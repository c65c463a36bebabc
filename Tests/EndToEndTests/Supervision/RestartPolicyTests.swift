import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("The policy of restart") struct RestartPolicyTests {
  @Test("A failing worker is restarted with its last exit in its environment, up to the limit")
  func givesUp() throws {
    let daemon = try TestDaemon(
      """
      workers:
        flaky:
          command: [sh, -c, 'echo \
      "<$DORMOUSE_LAST_EXIT|$DORMOUSE_LAST_EXIT_STATUS|$DORMOUSE_RESTARTS>"; exit 3']
          restart: { when: on-failure, backoff: { initial: 100ms }, give_up: { after: 2, within: \
      1m } }
        fine:
          command: ["true"]
          restart: on-failure
        absent:
          command: [no-such-program]
          restart: { when: on-failure, backoff: { initial: 50ms }, give_up: { after: 1, within: \
      1m } }

      """)
    for name in ["flaky", "absent"] {
      #expect(
        try eventually { try daemon.worker(name).reason.text.contains("gave up after") },
        "\(daemon.logText)")
    }
    let report = try daemon.worker("flaky")
    #expect(report.reason.text.contains("exited with status 3"))
    #expect(report.exits?.count == 3)
    #expect(report.restarts == 2)
    let lines = try readText(try #require(report.log)).split(separator: "\n")
    #expect(
      lines == ["<||>", "<exited with status 3|3|1>", "<exited with status 3|3|2>"])
    #expect(try daemon.done("status", "flaky").contains("2; its last runs: exited with"))
    // A success isn't restarted.
    #expect(try daemon.worker("fine").restarts == nil)
    #expect(try daemon.worker("fine").restartsInSeconds == nil)

    // The verb `start` resets the count of restarts.
    // A busy machine may not let it end within the second for which it is watched.
    var outcome: Outcome?
    let isReported = try eventually {
      outcome = try daemon.verb("start", "flaky")
      return outcome?.code == 1 && outcome?.error.contains("it restarts in") == true
    }
    #expect(isReported, "\(String(describing: outcome))")
    #expect(
      try eventually { try daemon.worker("flaky").reason.text.contains("gave up after 2") },
      "\(daemon.logText)")
    #expect(try readText(try #require(report.log)).contains("|3|0>"))
  }
}

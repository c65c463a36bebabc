import Control
import TestSupport
import Testing

@Suite("Workers that end as soon as they are started") struct FirstMomentsTests {
  private static let failing = "echo looking; echo 'no module named `x`' >&2; exit 3"

  @Test(
    "`start`, `run` and `restart` report exit and last log line of a worker that ends at once"
  )
  func endsAtOnce() throws {
    let daemon = try TestDaemon(
      BadWorkerTests.calm + """
        workers:
          fails: { command: [sh, -c, "\(Self.failing)"], autostart: false }
          waits: { command: [sh, -c, "sleep 0.05; exit 4"], autostart: false, readiness: { \
        log_line: up } }
        """)
    func expect(_ outcome: Outcome, of name: String) {
      #expect(outcome.code == 1 && !outcome.output.contains("is running\n"), "\(outcome)")
      #expect(outcome.error.contains("exited with status 3"), "\(outcome)")
      #expect(outcome.error.contains("no module named `x`"), "\(outcome)")
      #expect(outcome.error.contains("`dormouse logs \(name)`"), "\(outcome)")
    }
    expect(try daemon.verb("start", "fails"), of: "fails")
    expect(try daemon.verb("restart", "fails"), of: "fails")
    expect(try daemon.verb("run", "adhoc", "--", "/bin/sh", "-c", Self.failing), of: "adhoc")
    #expect(try daemon.worker("fails").exits?.last?.lastWords == "no module named `x`")
    #expect(try daemon.done("status", "fails").contains("no module named `x`"))

    let waits = try daemon.verb("start", "waits")
    #expect(waits.code == 1 && waits.error.contains("exited with status 4"), "\(waits)")
  }

  @Test(
    "`start` reports when a failed worker restarts, and succeeds for a job that ends with status 0"
  )
  func restartedAndDone() throws {
    let daemon = try TestDaemon(
      BadWorkerTests.calm + """
        workers:
          again: { command: [sh, -c, "exit 5"], autostart: false, restart: always }
          job: { command: [sh, -c, "echo migrated"], autostart: false }
        """)
    let again = try daemon.verb("start", "again")
    #expect(again.code == 1 && again.error.contains("it restarts in"), "\(again)")
    // On a busy machine a shell may need longer than `start` waits.
    let hasEnded = try eventually {
      try daemon.done("start", "job").hasPrefix("job has already ended: exited with status 0")
    }
    #expect(hasEnded)
    try daemon.done("stop", "again")
  }

  @Test("`start` reports an idle and a busy worker that stay alive as running")
  func stays() throws {
    let daemon = try TestDaemon(
      BadWorkerTests.calm + """
        workers:
          quiet: { command: sleep 654, autostart: false }
          busy: { command: [sh, -c, "while :; do :; done"], autostart: false }
        """)
    #expect(
      try daemon.done("start", "quiet", "busy") == "quiet is running\nbusy is running\n")
  }
}

import Control
import TestSupport
import Testing

@Suite("Workers that end as soon as they are started") struct FirstMomentsTests {
  private static let failing = "echo looking; echo 'no module named `x`' >&2; exit 3"

  @Test("`start`, `run` and `restart` report exit and last log line of a worker that ends at once")
  func endsAtOnce() throws {
    let daemon = try TestDaemon(
      BadWorkerTests.calm + """
        workers:
          fails: { command: [sh, -c, "\(Self.failing)"], autostart: false }
          waits: { command: [sh, -c, "sleep 0.05; exit 4"], autostart: false, readiness: { \
        log_line: up } }
        """)
    func expect(of name: String, _ verb: [String]) throws {
      var outcome = try daemon.enter(verb)
      // A busy machine may not let it end within the second for which it is watched.
      _ = try eventually {
        if outcome.code != 0 { return true }
        outcome = try daemon.enter(["restart", name])
        return false
      }
      #expect(outcome.code == 1 && !outcome.output.contains("is running\n"), "\(outcome)")
      #expect(outcome.error.contains("exited with status 3"), "\(outcome)")
      #expect(outcome.error.contains("no module named `x`"), "\(outcome)")
      #expect(outcome.error.contains("`dormouse logs \(name)`"), "\(outcome)")
    }
    try expect(of: "fails", ["start", "fails"])
    try expect(of: "fails", ["restart", "fails"])
    try expect(of: "adhoc", ["run", "adhoc", "--", "/bin/sh", "-c", Self.failing])
    #expect(try daemon.worker("fails").exits?.last?.lastWords == "no module named `x`")
    #expect(try daemon.done("status", "fails").contains("no module named `x`"))

    let waits = try daemon.verb("start", "waits")
    #expect(waits.code == 1 && waits.error.contains("exited with status 4"), "\(waits)")
  }
}

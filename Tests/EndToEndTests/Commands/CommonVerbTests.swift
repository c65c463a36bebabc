import TestSupport
import Testing

@Suite("Common mistakes with verbs") struct CommonVerbTests {
  @Test("A mistyped verb, or another supervisor's verb, gets the right one as a suggestion")
  func unknownVerb() throws {
    let scratch = try Scratch()
    for (verb, meant) in [("hibernat", "hibernate"), ("pause", "suspend"), ("list", "ps")] {
      let outcome = try Command.dormouse([verb, "web"]).run(in: scratch)
      #expect(outcome.code == 64)
      #expect(
        outcome.error == "dormouse: there is no verb `\(verb)`; did you mean `dormouse \(meant)`? "
          + "`dormouse --help` lists them all\n")
    }
  }

  @Test("A mistyped subcommand gets a suggestion, and `version` is explained")
  func unknownVerbOfVerb() throws {
    let scratch = try Scratch()
    func error(_ arguments: String...) throws -> String {
      let outcome = try Command.dormouse(arguments).run(in: scratch)
      #expect(outcome.code == 64, "\(outcome)")
      return outcome.error
    }
    #expect(
      try error("policy", "chek", "x.yaml")
        == "dormouse: there is no verb `chek` of `dormouse policy`; did you mean `dormouse policy "
        + "check`? `dormouse policy --help` lists them all\n")
    #expect(try error("footprint", "shwo", "x").contains("did you mean `dormouse footprint show`?"))
    #expect(try error("pressure", "sett").contains("did you mean `dormouse pressure set`?"))
    #expect(try error("version").contains("did you mean `dormouse --version`?"))
    let help = try Command.dormouse(["policy", "check", "--help"]).run(in: scratch)
    #expect(help.code == 0, "\(help)")
  }

  @Test(
    "A second `stop` succeeds, and an unknown name doesn't keep `restart` from the other workers")
  func restart() throws {
    let daemon = try TestDaemon(BadInputTests.idle)
    try daemon.wait("sleeper", toBe: "foreground")
    let before = try daemon.worker("sleeper").pid
    let outcome = try daemon.verb("restart", "ghost", "sleeper")
    #expect(outcome.code == 3)
    #expect(outcome.output == "sleeper has ended\nsleeper is running\n")
    let after = try daemon.worker("sleeper").pid
    #expect(after != nil && after != before)
    #expect(try daemon.verb("stop", "sleeper").code == 0)
    #expect(try daemon.verb("stop", "sleeper").output == "sleeper is not running\n")
    #expect(try daemon.verb("restart", "sleeper").code == 0)
    #expect(try daemon.worker("sleeper").state == "foreground")
  }

  @Test("`stop --keep-workers` ends only the daemon, and is refused together with names or options")
  func stopKeepingWorkers() throws {
    let daemon = try TestDaemon(BadInputTests.idle)
    try daemon.wait("sleeper", toBe: "foreground")
    let pid = try daemon.worker("sleeper").pid
    for arguments in [["sleeper"], ["--all"], ["--dry-run"]] {
      let outcome = try daemon.enter(["stop", "--keep-workers"] + arguments)
      #expect(outcome.code == 64 && outcome.error.contains("--keep-workers"), "\(outcome)")
    }
    try daemon.done("stop", "--keep-workers")
    #expect(try daemon.waitForEnd() == 0)
    try daemon.start()
    #expect(try daemon.worker("sleeper").pid == pid)
  }

  @Test func `A verb with a closed standard output reports the error and exits with 1`() throws {
    let daemon = try TestDaemon(BadInputTests.idle)
    let outcome = try Command(
      arguments: [
        "/bin/sh", "-c", "exec \"$0\" ps --socket \"$1\" >&-", TestMachine.executable,
        daemon.socket,
      ]
    ).run(in: daemon.scratch)
    #expect(outcome.code == 1)
    #expect(outcome.error.contains("Bad file descriptor"), "\(outcome)")
  }
}

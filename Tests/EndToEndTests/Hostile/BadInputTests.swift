import Control
import Linux
import TestSupport
import Testing

@Suite("Bad input at the command line") struct BadInputTests {
  static let idle = """
    policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
    workers: { sleeper: { command: sleep 620 } }
    """

  @Test func `Verbs on an unknown worker fail with exit code 3 and a one-line error`() throws {
    let daemon = try TestDaemon(Self.idle)
    for verb in [
      "start", "stop", "foreground", "background", "suspend", "hibernate", "wake", "terminate",
      "warn", "status", "logs",
    ] {
      let outcome = try daemon.verb(verb, "ghost")
      #expect(outcome.code == 3, "\(verb): \(outcome)")
      #expect(
        outcome.error
          == "dormouse: there is no worker named ghost; `dormouse ps` lists all workers\n"
      )
      #expect(outcome.output.isEmpty)
    }
  }

  @Test("`run` refuses a command that can't be executed, and creates no worker")
  func badCommand() throws {
    let daemon = try TestDaemon(Self.idle)
    for (command, message) in [
      ("no-such-program", "there is no command `no-such-program` in PATH"),
      ("/no/such/file", "there is no command `/no/such/file`"),
      ("/etc/passwd", "`/etc/passwd` is not executable"),
      ("/etc", "`/etc` is a directory, not a command"),
      ("", "there is no command ``"),
    ] {
      let outcome = try daemon.verb("run", "new", "--", command)
      #expect(outcome.code == 1)
      #expect(outcome.error == "dormouse: \(message)\n")
    }
    #expect(try daemon.verb("run", "new", "--").code == 64)
    #expect(try daemon.verb("run", "new").code == 64)
    #expect(try daemon.verb("run", "new", "--directory", "/none", "--", "sleep", "1").code == 1)
    #expect(try daemon.ask(.ps).workers?.map(\.state).contains("launching") == false)
  }

  @Test("`help` on an unknown verb suggests the nearest verb instead of printing the general help")
  func unknownHelp() throws {
    let daemon = try TestDaemon(Self.idle, starts: false)
    for (arguments, hint) in [(["help", "hibernat"], "hibernate"), (["hlep"], "help")] {
      let outcome = try Command.dormouse(arguments).run(in: daemon.scratch)
      #expect(outcome.code == 64 && outcome.output.isEmpty, "\(outcome)")
      #expect(outcome.error.contains("did you mean `dormouse \(hint)`?"), "\(outcome)")
    }
    for arguments in [
      ["help", "hibernate"], ["help", "policy", "check"], ["help"], ["--help"], [],
    ] {
      let outcome = try Command.dormouse(arguments).run(in: daemon.scratch)
      let beginning =
        arguments.count > 1
        ? "USAGE: dormouse \(arguments.dropFirst().joined(separator: " ")) ["
        : "USAGE: dormouse <verb> "
      #expect(outcome.code == 0 && outcome.output.hasPrefix(beginning), "\(outcome)")
    }
  }

  @Test("`run` and `start` don't start a worker that already runs")
  func twice() throws {
    let daemon = try TestDaemon(Self.idle)
    try daemon.done("run", "new", "--", "sleep", "621")
    #expect(try daemon.verb("run", "new", "--", "sleep", "621").code == 1)
    #expect(try daemon.verb("run", "sleeper", "--", "sleep", "621").code == 1)
    #expect(try daemon.done("start", "new").contains("is already running"))
    try daemon.done("stop", "new")
    // After the stop its name is free again.
    try daemon.done("run", "new", "--", "sleep", "622")
  }

  @Test(
    "A second daemon refuses to start on the same state directory or the same socket",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func secondDaemon(setting: Setting) throws {
    let daemon = try TestDaemon(Self.idle, setting: setting)
    try daemon.wait("sleeper", toBe: "foreground")
    let other = "\(daemon.scratch.path)/other"
    for (socket, state) in [(other, daemon.state), (daemon.socket, other)] {
      let process = try daemon.launch(
        ["--config", daemon.configuration, "--socket", socket, "--state-directory", state])
      #expect(try process.wait(.seconds(60)) == 73)
    }
    #expect(daemon.logText.contains("another daemon is running with \(daemon.state)"))
    #expect(daemon.logText.contains("another daemon is running with \(daemon.socket)"))
    // The first one has noticed nothing.
    #expect(try daemon.ask(.ps).workers?.count == 1)
    #expect(try daemon.ask(.ps).daemon?.pid == daemon.pid)
    if setting == .frozen {
      let ours = try daemon.recorded("cgroup", of: "sleeper")
      let parent = ours.split(separator: "/").dropLast(2).joined(separator: "/")
      let unique = try #require(daemon.scratch.path.split(separator: "-").last)
      let groups = try listDirectory("/\(parent)").filter { $0.contains(unique) }
      #expect(groups.count == 1, "\(groups)")
    }
  }
}

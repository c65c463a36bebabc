import Glibc
import Linux
import TestSupport
import Testing

@Suite("A configuration that is wrong") struct BadConfigurationTests {
  @Test("A configuration mistake is reported with its place and a hint, and no worker is started")
  func mistake() throws {
    let daemon = try TestDaemon(
      "policy_overrides: { hibernte: { after: 1s } }", starts: false, isCalm: false)
    let process = try daemon.launch()
    #expect(try process.wait(.seconds(60)) == 65, "\(daemon.logText)")
    #expect(daemon.logText.contains("dormouse.yaml:1:21:"), "\(daemon.logText)")
    #expect(daemon.logText.contains("did you mean `hibernate`?"), "\(daemon.logText)")
    #expect(access(daemon.state, F_OK) != 0)
    #expect(access(daemon.socket, F_OK) != 0)
  }

  @Test func `A missing configuration file is reported in one line`() throws {
    let daemon = try TestDaemon("", starts: false)
    let process = try daemon.launch(["--config", "/nowhere/dormouse.yaml"])
    #expect(try process.wait(.seconds(60)) == 65, "\(daemon.logText)")
    #expect(daemon.logText.contains("/nowhere/dormouse.yaml"))
    #expect(daemon.logText.split(separator: "\n").count <= 2, "\(daemon.logText)")
  }

  @Test(
    "Without a configuration file the daemon starts, and `reload` reads the file once it exists")
  func noneNamed() throws {
    let scratch = try Scratch()
    var command = Command.dormouse([
      "daemon", "--socket", "\(scratch.path)/s", "--state-directory", "\(scratch.path)/state",
    ])
    command.environment["XDG_CONFIG_HOME"] = scratch.path
    command.environment["DORMOUSE_CONTROL_SOCKET"] = "\(scratch.path)/s"
    let daemon = try command.start(output: "\(scratch.path)/out", error: "\(scratch.path)/err")
    func verb(_ arguments: String...) throws -> Outcome {
      var verb = command
      verb.arguments = [TestMachine.executable] + arguments
      return try verb.run(in: scratch)
    }
    #expect(try eventually { try verb("ps").code == 0 })
    // The log is written on another thread.
    let said = "no configuration at \(scratch.path)/dormouse/dormouse.yaml"
    #expect(try eventually { try readText("\(scratch.path)/err").contains(said) })
    #expect(try verb("run", "sleeper", "--", "sleep", "600").code == 0)
    #expect(mkdir("\(scratch.path)/dormouse", 0o700) == 0)
    _ = try scratch.write("dormouse/dormouse.yaml", "workers: { other: { command: sleep 601 } }\n")
    let reload = try verb("reload")
    #expect(reload.output.contains("other added"), "\(reload)")
    _ = try scratch.write("dormouse/dormouse.yaml", "")
    let emptied = try verb("reload")
    #expect(emptied.code != 0 && emptied.error.contains("--allow-empty"), "\(emptied)")
    #expect(try verb("ps", "--names").output.contains("other"))
    #expect(try verb("reload", "--allow-empty").output.contains("other removed"))
    #expect(try verb("shutdown").code == 0)
    #expect(try daemon.wait(.seconds(60)) == 0)
  }

  @Test(
    "A declared worker whose program doesn't exist doesn't keep the others from starting",
    arguments: Nightly.one(of: Setting.ofTestUser))
  func missingProgram(setting: Setting) throws {
    let daemon = try TestDaemon(
      """
      policy_overrides: { foreground: { max: 5 } }
      workers:
        good: { command: sleep 610 }
        lost: { command: no-such-program-here }
        path: { command: ./no/such/path }
        file: { command: [/etc/passwd] }
        away: { command: sleep 1, directory: /no/such/directory }
      """, setting: setting)
    try daemon.wait("good", toBe: "foreground")
    for name in ["lost", "path", "file", "away"] {
      try daemon.wait(name, toBe: "terminated")
      let outcome = try daemon.verb("start", name)
      #expect(outcome.code == 1)
      #expect(outcome.error.hasPrefix("dormouse: \(name) could not be launched: "), "\(outcome)")
      #expect(!outcome.error.contains("can't start"), "it says twice that it failed: \(outcome)")
      #expect(outcome.error.split(separator: "\n").count == 1, "\(outcome)")
    }
    let status = try daemon.done("status", "lost")
    #expect(status.contains("not found in its PATH"), "\(status)")
    if let group = daemon.record("good")["cgroup"] {
      let parent = "/" + group.split(separator: "/").dropLast().joined(separator: "/")
      #expect(try listDirectory(parent, onlyDirectories: true) == ["worker-good"])
    }
  }
}

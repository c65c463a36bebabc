import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Workers of `run`") struct RunTests {
  @Test("`run --restart` and --set hold over the daemon's restart, and `rm` removes the worker")
  func settings() throws {
    let daemon = try TestDaemon("workers: { one: { command: sleep 690 } }")
    try daemon.done(
      "run", "job", "--restart", "always", "--set", "restart.backoff.initial=10ms", "--set",
      "groups=bots", "--", "sleep", "691")
    try daemon.restartAfterCrash()
    var adoptedPid: Int32?
    #expect(
      try eventually {
        // Until it is adopted there is no report of it.
        adoptedPid = (try? daemon.worker("job"))?.pid
        return adoptedPid != nil
      })
    let first = try #require(adoptedPid)
    #expect(try daemon.worker("job").groups == ["bots"])
    kill(first, SIGKILL)
    #expect(
      try eventually {
        let pid = try daemon.worker("job").pid
        return pid != nil && pid != first
      })
    #expect(try daemon.verb("rm", "one").error.contains("one is in the configuration"))
    #expect(try daemon.verb("rm", "job").error.contains("job is running"))
    #expect(
      try daemon.done("rm", "--dry-run", "-f", "job").contains("would be stopped and removed"))
    let log = "\(daemon.state)/logs/job.log"
    #expect(!isAbsent(log))
    #expect(try daemon.done("rm", "-f", "job") == "job and its log are removed\n")
    #expect(try daemon.done("ps", "--names") == "one\n" && isAbsent(log))
    #expect(try daemon.verb("rm", "job").code == CommandExit.unknownWorker.rawValue)
    // The name is free.
    try daemon.done("run", "job", "--", "sleep", "691")
  }

  @Test("`run --save` adds the worker to the user's configuration, which keeps its comments")
  func save() throws {
    let home = try Home()
    let file = try home.scratch.write(
      "config/dormouse/dormouse.yaml", "# mine\nworkers:\n  one: { command: sleep 690 }  # first\n")
    // The umask doesn't apply: the daemon may be another user of the file's group.
    chmod(file, 0o660)
    let options = ["--env", "A=b", "--restart", "on-failure", "--save"]
    let outcome = try home.run(["run", "two"] + options + ["--", "sleep", "691"], in: "run")
    #expect(outcome.code == 0 && outcome.error.contains("two is saved in "), "\(outcome)")
    let text = try readText(file)
    #expect(text.hasPrefix("# mine\nworkers:\n  one: { command: sleep 690 }  # first\n  two:  # "))
    #expect(text.contains("directory: \(home.scratch.path)/run\n"), "\(text)")
    #expect(try #require(fileStatus(of: file)).st_mode & 0o777 == 0o660)
    // A second worker of that name would be an error of the configuration.
    let again = try home.run(["run", "one", "--save", "--", "sleep", "692"], in: "run")
    #expect(again.code == CommandExit.badConfiguration.rawValue, "\(again)")
    #expect(try readText(file) == text)
    try home.run(["shutdown"], in: "")
    // `shutdown` is answered before the daemon's process has ended.
    #expect(try eventually { try home.run(["daemon", "-d"], in: "").code == 0 })
    #expect(try home.run(["ps", "--names"], in: "").output == "one\ntwo\n")
  }

  @Test("`run --save` keeps what is written to the configuration until the worker is ready")
  func saveBesideEditor() throws {
    let home = try Home()
    let before = "workers:\n  one: { command: sleep 690 }\n"
    let file = try home.scratch.write("config/dormouse/dormouse.yaml", before)
    let script = "echo '# edited meanwhile' >> '\(file)'; echo up; exec sleep 691"
    let options = ["--readiness", "log_line=up", "--save", "--", "sh", "-c", script]
    let outcome = try home.run(["run", "two"] + options, in: "run")
    #expect(outcome.code == 0, "\(outcome)")
    let text = try readText(file)
    #expect(text.contains("# edited meanwhile\n") && text.contains("  two:  #"), "\(text)")
  }

  @Test("`run --save` replaces the file behind a link, and reads the others beside the link")
  func saveBehindLink() throws {
    let home = try Home()
    let target = try home.scratch.write(
      "dotfiles/main", "workers:\n  one: { command: sleep 690, env_file: .env }\n")
    try home.scratch.write("config/dormouse/.env", "A=b\n")
    try home.scratch.write(
      "config/dormouse/conf.d/two.yaml", "workers: { two: { command: sleep 690 } }\n")
    let link = "\(home.scratch.path)/config/dormouse/dormouse.yaml"
    #expect(symlink(target, link) == 0)
    let run = try home.run(["run", "three", "--save", "--", "sleep", "691"], in: "run")
    #expect(run.code == 0, "\(run)")
    #expect(try readText(target).contains("  three:  #") && readLink(link) == target)
    let again = try home.run(["run", "two", "--save", "--", "sleep", "692"], in: "run")
    #expect(again.code == CommandExit.badConfiguration.rawValue, "\(again)")
  }

  @Test("`run --save` and `rm` change no configuration that isn't UTF-8 text")
  func otherEncoding() throws {
    let home = try Home()
    let file = try home.scratch.write("config/dormouse/dormouse.yaml", "workers: {}\n")
    let run = try home.run(["run", "two", "--save", "--", "sleep", "691"], in: "run")
    #expect(run.code == 0, "\(run)")
    let latin = Array("# caf".utf8) + [0xE9, 0x0A]
    let bytes = try readFile(file) + latin
    try StateFile.replace(file, with: bytes, durability: .none)
    let removed = try home.run(["rm", "-f", "two"], in: "")
    #expect(removed.code != 0 && removed.error.contains("isn't UTF-8 text"), "\(removed)")
    let again = try home.run(["run", "three", "--save", "--", "sleep", "692"], in: "run")
    #expect(again.code == CommandExit.badConfiguration.rawValue, "\(again)")
    #expect(try readFile(file) == bytes)
  }

  @Test("`rm` removes what `run --save` has added, before and after a daemon has read it")
  func removeSaved() throws {
    let home = try Home()
    let before = "# mine\nworkers:\n  one: { command: sleep 690 }  # first\n\n# last\n"
    let file = try home.scratch.write("config/dormouse/dormouse.yaml", before)
    for isRead in [false, true] {
      let run = try home.run(["run", "two", "--save", "--", "sleep", "691"], in: "run")
      #expect(run.code == 0, "\(run)")
      #expect(try readText(file) != before)
      if isRead { #expect(try home.run(["reload"], in: "").code == 0) }
      let refused = try home.run(["rm", "two"], in: "")
      #expect(refused.code != 0, "it runs: \(refused)")
      #expect(try readText(file) != before)
      let removed = try home.run(["rm", "-f", "two"], in: "")
      #expect(removed.code == 0 && removed.output.contains("is removed from "), "\(removed)")
      #expect(try readText(file) == before)
      #expect(try home.run(["reload"], in: "").output.contains("nothing changed"))
      #expect(
        try eventually { try home.run(["ps", "--names"], in: "").output == "one\n" })
    }
    let byHand = try home.run(["rm", "-f", "one"], in: "")
    #expect(byHand.code != 0 && byHand.error.contains("remove it there"), "\(byHand)")
    #expect(try readText(file) == before)
  }

  @Test("`run --save` and `rm` change the file that the daemon was started with")
  func otherConfiguration() throws {
    let home = try Home()
    let userFile = try home.scratch.write("config/dormouse/dormouse.yaml", "workers: {}\n")
    let before = "# other\nworkers:\n  one: { command: sleep 690 }\n"
    let file = try home.scratch.write("run/other.yaml", before)
    let daemon = try home.run(["daemon", "-d", "--config", "other.yaml"], in: "run")
    #expect(daemon.code == 0, "\(daemon)")
    let run = try home.run(["run", "two", "--save", "--", "sleep", "691"], in: "")
    #expect(run.code == 0 && run.error.contains("run/other.yaml"), "\(run)")
    #expect(try readText(file).hasPrefix(before))
    let removed = try home.run(["rm", "-f", "two"], in: "")
    #expect(removed.output.contains("run/other.yaml"), "\(removed)")
    #expect(try readText(file) == before)
    #expect(try readText(userFile) == "workers: {}\n")
  }

  @Test("`run --policy` is that of the daemon it starts, and an error with another daemon")
  func policy() throws {
    let home = try Home()
    try home.scratch.write("run/mine.yaml", "name: mine\nextends: server\n")
    let first = try home.run(
      ["run", "one", "--policy", "mine.yaml", "--", "sleep", "690"], in: "run")
    #expect(first.code == 0, "\(first)")
    #expect(try home.run(["status"], in: "").output.contains("mine"))
    let other = try home.run(["run", "two", "--policy", "server", "--", "sleep", "690"], in: "run")
    #expect(other.code == 1 && other.error.contains("policy `mine`, not `server`"), "\(other)")
    let same = try home.run(
      ["run", "two", "--policy", "../run/mine.yaml", "--", "sleep", "690"], in: "run")
    #expect(same.code == 0, "\(same)")
  }

  @Test("A package's script is called after the package, or else after the directory")
  func packageNames() throws {
    let home = try Home()
    let npm = try home.scratch.write("run/bin/npm", "#!/bin/sh\nexec sleep 690\n")
    chmod(npm, 0o755)
    try home.scratch.write("run/shop/package.json", "{\"name\": \"@acme/web-shop\", \"x\": [1]}")
    try home.scratch.write("run/plain/keep", "")
    for (directory, name) in [("run/shop", "web-shop"), ("run/plain", "plain")] {
      let run = try home.run(["run", "--", npm, "start"], in: directory)
      #expect(run.output == "\(name) is running\n", "\(run)")
    }
  }

  @Test("Without a name a worker is called after its script, with a number if that one runs")
  func names() throws {
    let home = try Home()
    try home.scratch.write("run/poll.sh", "exec sleep 690\n")
    for (arguments, name) in [
      (["sh", "poll.sh"], "poll"), (["--", "sh", "./poll.sh"], "poll-2"),
      (["--importance", "3", "sh", "poll.sh", "--json"], "poll-3"),
      (["/bin/sleep", "691"], "sleep"), (["named", "--", "sh", "poll.sh"], "named"),
    ] {
      let outcome = try home.run(["run"] + arguments, in: "run")
      #expect(outcome.output == "\(name) is running\n", "\(arguments): \(outcome)")
    }
    let single = try home.run(["run", "sleep"], in: "run")
    #expect(single.code == 64 && single.error.contains("`dormouse run sleep -- COMMAND`"))
    // After the end its name is free.
    try home.run(["stop", "poll"], in: "")
    #expect(try home.run(["run", "sh", "poll.sh"], in: "run").output == "poll is running\n")
  }

  @Test("`adopt --dry-run` with a process adopts nothing, and `adopt` needs no name")
  func adopt() throws {
    let daemon = try TestDaemon("workers: {}\n")
    let script = try daemon.scratch.write("poll.sh", "while :; do sleep 0.2; done\n")
    let other = try Command(arguments: ["sh", script])
      .start(output: daemon.scratch.uniquePath("out"), error: daemon.scratch.uniquePath("err"))
    defer {
      kill(other.pid, SIGKILL)
      _ = try? other.wait(.seconds(60))
    }
    // The shell shows the words of its own command once it has been executed.
    #expect(try eventually { try ProcessCommand.read(other.pid).arguments.contains(script) })
    let arguments = ["adopt", "--pid", "\(other.pid)"]
    let wrong = try daemon.enter(arguments + ["--health-check", "healthz"])
    #expect(wrong.code == 64 && wrong.error.contains("`healthz` isn't a health check"), "\(wrong)")
    let dry = try daemon.enter(arguments + ["--dry-run"])
    #expect(dry.code == 0, "\(dry)")
    #expect(dry.output.hasPrefix("poll would be adopted: pid \(other.pid) (sh "), "\(dry)")
    #expect(try daemon.done("ps", "--names") == "")
    let adopted = try daemon.enter(arguments)
    #expect(adopted.code == 0, "\(adopted)")
    #expect(try daemon.done("ps", "--names") == "poll\n")
    #expect(try daemon.enter(["adopt", "poll"] + arguments.dropFirst() + ["--dry-run"]).code == 1)
    try daemon.done("release", "poll")
  }
}

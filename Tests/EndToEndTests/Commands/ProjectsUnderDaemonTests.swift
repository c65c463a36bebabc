import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Projects with a daemon of their own") struct ProjectsUnderDaemonTests {
  private static let sleeper = "workers: { one: { command: [sh, -c, 'echo hi; exec sleep 690'] } }"

  @Test func `Two projects run side by side, and verbs use that of their directory`() throws {
    let home = try Home()
    try home.project("shop", Self.sleeper)
    try home.project("forum", "workers: { a: { command: sleep 690 }, b: { command: sleep 690 } }")
    for name in ["shop", "forum"] {
      let up = try home.run(["up", "-d"], in: "\(name)/src")
      #expect(up.code == 0 && up.error.contains("project \(name): "), "\(up)")
    }
    #expect(try home.run(["ps", "--names"], in: "shop/src").output == "one\n")
    #expect(try home.run(["ps", "--names"], in: "forum").output == "a\nb\n")
    #expect(try home.run(["ps", "--names", "--project", "shop"], in: "").output == "one\n")
    #expect(try home.run(["ps"], in: "").code == CommandExit.noDaemon.rawValue)
    let wrong = try home.run(["ps", "--project", "shopp"], in: "")
    #expect(wrong.code == 64 && wrong.error.contains("did you mean `shop`?"), "\(wrong)")
    let json = try home.run(["ls", "--json"], in: "").output
    #expect(json.components(of: "\"isRunning\":true") == 2 && json.contains("/forum\""), "\(json)")
    #expect(try home.run(["up", "-d"], in: "shop").error.contains("nothing changed"))
    #expect(try home.run(["down"], in: "shop").code == 0)
    #expect(try home.run(["down"], in: "shop").code == CommandExit.noDaemon.rawValue)
    let without = try home.run(["ps"], in: "shop")
    #expect(without.code == CommandExit.noDaemon.rawValue)
    #expect(without.error.contains("`dormouse up` starts it with "), "\(without)")
    let table = try home.run(["ls"], in: "").output
    #expect(
      table.components(of: "running") == 1 && table.components(of: "stopped") == 1, "\(table)")
  }

  @Test("`up` shows the workers' output, and Ctrl-C stops workers and daemon")
  func foreground() throws {
    let home = try Home()
    try home.project("shop", Self.sleeper)
    let (output, error) = (home.scratch.uniquePath("out"), home.scratch.uniquePath("err"))
    let process = try home.command(["up"], in: "shop").start(output: output, error: error)
    #expect(try eventually { try readText(output).contains("one | hi") })
    #expect(try home.run(["ps", "--names"], in: "shop").output == "one\n")
    kill(process.pid, SIGINT)
    #expect(try process.wait(.seconds(60)) == 0)
    #expect(try readText(error).contains("all workers are stopped"))
    #expect(try home.run(["down"], in: "shop").code == CommandExit.noDaemon.rawValue)
  }

  @Test("Ctrl-C stops the workers of `up` while a worker writes faster than its lines are shown")
  func flood() throws {
    let home = try Home()
    let count = 2_000_000
    try home.project(
      "shop",
      "workers: { one: { command: [sh, -c, \"yes | head -n \(count); exec sleep 690\"] } }")
    let (output, error) = (home.scratch.uniquePath("out"), home.scratch.uniquePath("err"))
    let process = try home.command(["up"], in: "shop").start(output: output, error: error)
    #expect(try eventually { (fileStatus(of: output)?.st_size ?? 0) > 0 })
    kill(process.pid, SIGINT)
    #expect(try eventually { try readText(error).contains("stopping the workers") })
    // Each line is `one | y`. Not all of them are printed before the signal is handled.
    #expect((fileStatus(of: output)?.st_size ?? 0) < count * 8)
    // A second signal leaves out what isn't printed yet.
    kill(process.pid, SIGINT)
    try process.wait(.seconds(60))
    _ = try home.run(["down"], in: "shop")
  }

  @Test("Ctrl-C ends `up` although its daemon doesn't answer")
  func silentDaemon() throws {
    let home = try Home()
    try home.project("shop", Self.sleeper)
    let (output, error) = (home.scratch.uniquePath("out"), home.scratch.uniquePath("err"))
    let process = try home.command(["up"], in: "shop").start(output: output, error: error)
    #expect(try eventually { try readText(output).contains("one | hi") })
    let daemon = try #require(try home.daemons().first)
    kill(daemon, SIGSTOP)
    defer { kill(daemon, SIGCONT) }
    // In this time it asks the daemon for the workers, and waits for the answer.
    pauseThread(for: .seconds(4))
    kill(process.pid, SIGINT)
    #expect(try eventually { try readText(error).contains("stopping the workers") })
    kill(process.pid, SIGINT)
    #expect(try process.wait(.seconds(60)) == 128 + SIGINT)
  }

  @Test("A second Ctrl-C ends the daemon at once, and leaves a worker running that takes its time")
  func secondCtrlC() throws {
    let home = try Home()
    let stubborn = "trap 'echo asked' TERM; echo pid $$; while :; do sleep 0.1; done"
    try home.project(
      "shop", "workers: { one: { command: [sh, -c, \"\(stubborn)\"], stop_grace: 10m } }")
    let (output, error) = (home.scratch.uniquePath("out"), home.scratch.uniquePath("err"))
    let process = try home.command(["up"], in: "shop").start(output: output, error: error)
    var pid: Int32?
    #expect(
      try eventually {
        let line = try readText(output).split(separator: "\n").first { $0.contains("| pid ") }
        pid = line.flatMap { Int32($0.split(separator: " ").last ?? "") }
        return pid != nil
      })
    defer { if let pid { kill(pid, SIGKILL) } }
    kill(process.pid, SIGINT)
    #expect(try eventually { try readText(output).contains("| asked") })
    kill(process.pid, SIGINT)
    #expect(try process.wait(.seconds(40)) == 128 + SIGINT)
    #expect(
      try eventually {
        try home.run(["ps"], in: "shop").code == CommandExit.noDaemon.rawValue
      })
    #expect(try !hasEnded(#require(pid)))
    let named = try "one (pid \(#require(pid)))"
    #expect(try readText(error).contains("the daemon ends; \(named) is left running"))
    // With it the worker ends when it is asked to.
    try home.project("shop", "workers: { one: { command: [sh, -c, exit], stop_grace: 100ms } }")
    let down = try home.run(["down"], in: "shop")
    #expect(down.code == 0 && down.error.contains("left without a daemon"), "\(down)")
    #expect(down.error.contains(named), "\(down)")
    #expect(try eventually { try hasEnded(#require(pid)) })
    #expect(try home.run(["down"], in: "shop").code == CommandExit.noDaemon.rawValue)
  }

  @Test("`up` names a worker that can't start, and starts it when its command is corrected")
  func corrected() throws {
    let home = try Home()
    try home.project("shop", "workers: { one: { command: [/no/such/program] } }")
    let up = try home.run(["up", "-d"], in: "shop")
    let failed = CommandExit.notDone.rawValue
    #expect(
      up.code == failed && up.error.contains("one doesn't run: attempt failed: /no/such"), "\(up)")
    try home.project("shop", "workers: { one: { command: [\(home.scratch.path)/later] } }")
    let again = try home.run(["up", "-d"], in: "shop")
    #expect(again.error.contains("is started again"), "\(again)")
    #expect(again.code == failed && again.error.contains("one doesn't run"), "\(again)")
    // The program exists now, and the configuration is the same.
    try home.scratch.write("later", "#!/bin/sh\nexec sleep 690\n")
    #expect(chmod("\(home.scratch.path)/later", 0o755) == 0)
    let third = try home.run(["up", "-d"], in: "shop")
    #expect(third.code == 0 && third.error.contains("nothing changed"), "\(third)")
    #expect(
      try eventually { try home.run(["ps"], in: "shop").output.contains("foreground") })
    // The second is launched, and fails at once.
    try home.project(
      "shop",
      """
      workers: { one: { command: [\(home.scratch.path)/later] }, two: { command: [sh, -c, exit 3] \
      } }
      """)
    #expect(
      try eventually {
        let ended = try home.run(["up", "-d"], in: "shop")
        return ended.code == failed && ended.error.contains("two doesn't run: exited")
      })
  }

  @Test("`up` starts its daemon again after a crash, which takes the workers over")
  func crash() throws {
    let home = try Home()
    try home.project("shop", Self.sleeper)
    let (output, error) = (home.scratch.uniquePath("out"), home.scratch.uniquePath("err"))
    let process = try home.command(["up"], in: "shop").start(output: output, error: error)
    func report() throws -> Listing? {
      let outcome = try home.run(["status", "--json"], in: "shop")
      guard outcome.code == 0 else { return nil }
      return try WireCodec.decode(Listing.self, from: Array(outcome.output.utf8))
    }
    var before: Listing?
    #expect(
      try eventually {
        before = try report()
        return before?.workers.first?.state == "foreground"
      })
    // `up` shows the output: its start is complete.
    #expect(try eventually { try readText(output).contains("one | hi") })
    let (daemon, worker) = (try #require(before?.daemon?.pid), before?.workers.first?.pid)
    kill(daemon, SIGKILL)
    #expect(try eventually { try readText(error).contains("started again") })
    #expect(try readText(error).contains("was ended by signal 9"))
    #expect(try eventually { try report()?.workers.first?.pid == worker })
    #expect(try report()?.daemon?.pid != daemon)
    kill(process.pid, SIGINT)
    #expect(try process.wait(.seconds(60)) == 0)
    #expect(try readText(error).contains("all workers are stopped"))
  }

  @Test("`up` names the workers that it doesn't start, and `down --dry-run` stops none")
  func unstarted() throws {
    let home = try Home()
    try home.project(
      "shop", "workers: { a: { command: sleep 690 }, b: { command: x, autostart: false } }")
    let up = try home.run(["up", "-d"], in: "shop")
    #expect(up.code == 0 && up.error.contains("not started: b (`autostart: false`"), "\(up)")
    let dry = try home.run(["down", "--dry-run"], in: "shop")
    #expect(dry.output.contains("a would be stopped") && !dry.output.contains("b would"), "\(dry)")
    #expect(try home.run(["ps", "--names"], in: "shop").code == 0)
    let other = try home.run(["up", "-d", "--policy", "iphone-os-3"], in: "shop")
    #expect(other.code == 1 && other.error.contains("not `iphone-os-3`"), "\(other)")
  }

  @Test
  func `A verb of a project whose daemon has ended doesn't reach the user's own daemon`() throws {
    let home = try Home()
    try home.project("shop", Self.sleeper)
    try home.project("forum", Self.sleeper)
    // The user's own daemon, which has a worker of the same name.
    let userDaemon = try home.command(
      ["daemon", "--config", "\(home.scratch.path)/forum/dormouse.yaml"], in: ""
    ).start(output: home.scratch.uniquePath("out"), error: home.scratch.uniquePath("err"))
    defer {
      kill(userDaemon.pid, SIGTERM)
      _ = try? userDaemon.wait(.seconds(40))
    }
    #expect(try eventually { try home.run(["ps", "--names"], in: "").output == "one\n" })
    // Never started by `up`: the configuration may be the own daemon's.
    #expect(try home.run(["ps", "--names"], in: "shop").output == "one\n")
    #expect(try home.run(["up", "-d"], in: "shop").code == 0)
    #expect(try home.run(["down"], in: "shop").code == 0)
    let stop = try home.run(["stop", "one"], in: "shop/src")
    #expect(stop.code == CommandExit.noDaemon.rawValue, "\(stop)")
    #expect(stop.error.contains("the daemon of project shop isn't running"), "\(stop)")
    #expect(try home.run(["ps"], in: "").output.contains("foreground"))
  }

  @Test("A policy file of `up --policy` is looked for in the caller's directory")
  func policyFile() throws {
    let home = try Home()
    try home.project("shop", Self.sleeper)
    try home.scratch.write("shop/src/mine.yaml", "extends: server\n")
    for path in ["mine.yaml", "../src/mine.yaml"] {
      let up = try home.run(["up", "-d", "--policy", path], in: "shop/src")
      #expect(up.code == 0, "\(up)")
      #expect(try home.run(["status"], in: "shop").output.contains("mine"))
      #expect(try home.run(["down"], in: "shop").code == 0)
    }
  }

  @Test("`up` says what is wrong with a configuration, and leaves no daemon")
  func wrong() throws {
    let home = try Home()
    try home.project("shop", "workers: { one: { comand: sleep 1 } }")
    let up = try home.run(["up", "-d"], in: "shop")
    #expect(up.code == CommandExit.badConfiguration.rawValue, "\(up)")
    #expect(up.error.contains("did you mean `command`?"), "\(up)")
    let nowhere = try home.run(["up"], in: "")
    #expect(nowhere.code == 64 && nowhere.error.contains("there is no dormouse.yaml here"))
  }

  @Test("Ctrl-C at the output of `attach` stops no worker")
  func attach() throws {
    let home = try Home()
    try home.project("shop", Self.sleeper)
    try home.run(["up", "-d"], in: "shop")
    let output = home.scratch.uniquePath("out")
    let process = try home.command(["attach"], in: "shop")
      .start(output: output, error: home.scratch.uniquePath("err"))
    #expect(try eventually { try home.run(["ps"], in: "shop").output.contains("one") })
    // It has its signals once it has connected, and a signal before that ends it as well.
    kill(process.pid, SIGINT)
    _ = try process.wait(.seconds(60))
    #expect(try home.run(["ps", "--names"], in: "shop").output == "one\n")
  }
}

extension String {
  /// How often `separator` is in it.
  fileprivate func components(of separator: String) -> Int {
    split(separator: separator, omittingEmptySubsequences: false).count - 1
  }
}

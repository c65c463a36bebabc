import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("Daemons in the background") struct BackgroundDaemonTests {
  /// The number after "pid ".
  private func pid(in text: String) throws -> Int32 {
    // A message is wrapped at the width of a terminal.
    let tokens = text.split { $0.isWhitespace || "(,)".contains($0) }
    let index = try #require(tokens.firstIndex(of: "pid"), "\(text)")
    return try #require(Int32(tokens[index + 1]), "\(text)")
  }

  @Test(
    "`run` starts the user's daemon if none answers, says so once, and keeps no descriptor open")
  func run() throws {
    let home = try Home()
    let script = "exec 9> lock && exec \"$0\" run one -- sleep 690"
    let first = try home.bare(["sh", "-c", script, TestMachine.executable], in: "run")
      .run(in: home.scratch)
    #expect(first.code == 0 && first.output == "one is running\n", "\(first)")
    let daemon = try pid(in: first.error)
    #expect(first.error.contains("\(home.scratch.path)/state/dormouse/daemon.log"), "\(first)")
    #expect(
      try listDirectory("/proc/\(daemon)/fd").allSatisfy { number in
        readLink("/proc/\(daemon)/fd/\(number)") != "\(home.scratch.path)/run/lock"
      })
    let second = try home.run(["run", "two", "--", "sleep", "690"], in: "")
    #expect(second.code == 0 && second.error.isEmpty, "\(second)")
    #expect(try home.run(["ps", "--names"], in: "").output == "one\ntwo\n")
  }

  @Test("Of two `run` at the same moment, one starts the daemon, and both start their workers")
  func race() throws {
    let home = try Home()
    let script = "\"$0\" run one -- sleep 690 & \"$0\" run two -- sleep 690 && wait $!"
    let both = try home.bare(["sh", "-c", script, TestMachine.executable], in: "")
      .run(in: home.scratch)
    #expect(both.code == 0, "\(both)")
    #expect(try home.run(["ps", "--names"], in: "").output == "one\ntwo\n", "\(both)")
  }

  @Test("`run` starts no daemon at a socket that was named, and none for a project")
  func named() throws {
    let home = try Home()
    try home.project("shop", "workers: { one: { command: sleep 690 } }")
    #expect(try home.run(["up", "-d"], in: "shop").code == 0)
    #expect(try home.run(["down"], in: "shop").code == 0)
    let command = ["two", "--", "sleep", "690"]
    for options in [["--socket", "\(home.scratch.path)/s"], ["--project", "shop"], []] {
      let outcome = try home.run(["run"] + options + command, in: "shop")
      #expect(outcome.code == CommandExit.noDaemon.rawValue, "\(options): \(outcome)")
    }
    #expect(try home.run(["ps"], in: "").code == CommandExit.noDaemon.rawValue)
  }

  @Test("`daemon --detach` ends when the daemon answers, and says its pid and log")
  func detach() throws {
    let home = try Home()
    let outcome = try home.run(["daemon", "-d"], in: "run")
    #expect(outcome.code == 0, "\(outcome)")
    #expect(outcome.output.contains("\(home.scratch.path)/state/dormouse/daemon.log"))
    let status = try home.run(["status", "--json"], in: "")
    #expect(status.output.contains("\"pid\":\(try pid(in: outcome.output))"), "\(status)")
    let second = try home.run(["daemon", "-d"], in: "")
    #expect(second.code == CommandExit.cannotCreate.rawValue, "\(second)")
    #expect(second.error.contains("already"), "\(second)")
  }

  @Test(
    "`daemon --detach` reports what is wrong with a configuration")
  func wrong() throws {
    let home = try Home()
    try home.project("shop", "workers: { one: { comand: sleep 1 } }")
    let wrong = try home.run(["daemon", "-d", "--config", "dormouse.yaml"], in: "shop")
    #expect(wrong.code == CommandExit.badConfiguration.rawValue, "\(wrong)")
    #expect(wrong.error.contains("did you mean `command`?"), "\(wrong)")
  }

  @Test("A daemon that `shutdown` doesn't reach at the end of a test is found and ended")
  func unreachable() throws {
    let home = try Home()
    let daemon = try pid(in: try home.run(["daemon", "-d"], in: "run").output)
    // No client finds its socket any more.
    let path = home.scratch.path
    try #require(rename("\(path)/run", "\(path)/other") == 0)
    #expect(home.endDaemons(after: .seconds(1)) == [daemon])
    let hasEnded = try eventually {
      try readIfPossible { () throws(SystemCallError) in try ProcessStat.read(daemon) }?
        .isEnded != false
    }
    #expect(hasEnded)
  }
}

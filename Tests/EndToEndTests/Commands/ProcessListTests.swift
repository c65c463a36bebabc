import Control
import Linux
import TestSupport
import Testing

@Suite("ps with states, orders and --watch") struct ProcessListTests {
  private static let four = """
    policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
    workers:
      large: { command: [\(TestMachine.python), -c, "x = bytearray(30 << 20); import time; \
    time.sleep(681)"] }
      busy: { command: "sh -c 'while :; do :; done'" }
      a: { command: sleep 682 }
      b: { command: sleep 683, autostart: false }
    """

  private func names(_ daemon: TestDaemon, _ options: String...) throws -> [String] {
    let outcome = try daemon.enter(["ps", "--names"] + options)
    #expect(outcome.code == 0, "\(outcome)")
    return outcome.output.split(separator: "\n").map(String.init)
  }

  @Test("`--state` lists the workers in these states, and `--sort` sorts what is listed")
  func statesAndOrders() throws {
    let daemon = try TestDaemon(Self.four)
    // The state of each begins before the hibernation of the large one.
    try daemon.bringToFront("a", among: ["large", "busy", "a"])
    #expect(try eventually { try daemon.worker("large").footprint > 30 << 20 })
    try daemon.done("hibernate", "large")
    #expect(try names(daemon, "--state", "hibernated") == ["large"])
    #expect(try Set(names(daemon, "--state", "terminated, Hibernated")) == ["b", "large"])
    #expect(try names(daemon, "--state", "suspended").isEmpty)
    #expect(try names(daemon, "--state", "never-started") == ["b"])
    #expect(try names(daemon, "--state", "stopped,failed").isEmpty)
    #expect(try daemon.done("ps", "--state", "suspended").hasPrefix("no workers\n"))
    #expect(try names(daemon, "--sort", "name") == ["a", "b", "busy", "large"])
    #expect(try names(daemon, "--sort", "saved").first == "large")
    // Its processor time is known when it has been measured twice.
    #expect(try eventually { try names(daemon, "--sort", "cpu").first == "busy" })
    #expect(try names(daemon, "--sort", "state").suffix(2) == ["large", "b"])
    #expect(try names(daemon, "--sort", "for").first == "large")
    let listing = try daemon.json(
      Listing.self, "ps", "--sort", "footprint", "--state", "foreground,background,terminated")
    let footprints = listing.workers.map(\.footprint)
    #expect(footprints == footprints.sorted(by: >) && footprints.count == 3)
    let table = try daemon.done("ps", "--sort", "cpu").split(separator: "\n")
    #expect(table[0].contains("CPU"))
    #expect(table[1].hasPrefix("busy "), "\(table)")
    #expect(table[1].contains(" % "), "\(table)")
    #expect(try !daemon.done("ps", "--sort", "name").contains("CPU"))
    try daemon.done("stop", "a")
    #expect(try Set(names(daemon, "--state", "stopped, never started")) == ["a", "b"])
  }

  @Test(
    "An unknown state or key is an error with a suggestion",
    arguments: [
      (["--state", "hibernatd"], "did you mean `hibernated`?"),
      (["--state", "suspended,"], "`` is no state; there are launching, foreground"),
      (["--sort", "footprnt"], "did you mean `footprint`?"),
      (["--sort", "xyzzy"], "there are footprint, name, state, for, cpu, saved"),
      (["--delay", "1s"], "--delay is for --watch."),
      (["--watch", "--names"], "--watch or --names, one of the two."),
      (["--watch", "-d", "1ms"], "--delay is from 100ms to 1h."),
    ])
  func mistakes(options: [String], message: String) throws {
    let scratch = try Scratch()
    let outcome = try Command.dormouse(["ps", "--socket", "/nowhere"] + options).run(in: scratch)
    #expect(outcome.code == 64, "\(outcome)")
    #expect(outcome.error.contains(message), "\(outcome)")
  }

  @Test("`--watch` without a terminal prints table after table, or JSON, until the daemon ends")
  func watchWithoutTerminal() throws {
    let daemon = try TestDaemon(Self.four)
    let paths = [daemon.scratch.uniquePath("text"), daemon.scratch.uniquePath("json")]
    let errors = daemon.scratch.uniquePath("errors")
    let processes = try zip(paths, [[], ["--json"]]).map { path, option in
      try Command.dormouse(["ps", "--socket", daemon.socket, "--watch", "-d", "100ms"] + option)
        .start(output: path, error: errors)
    }
    #expect(
      try eventually {
        try readText(paths[0]).split(separator: "\n").count { $0.hasPrefix("NAME ") } > 2
          && readText(paths[1]).split(separator: "\n").count > 2
      })
    try daemon.crash()
    for process in processes { #expect(try process.wait(.seconds(60)) == 5) }
    let text = try readText(paths[0])
    #expect(text.contains("\n\nNAME ") && !text.contains("\u{1B}"), "\(text)")
    for line in try readText(paths[1]).split(separator: "\n") {
      #expect(try WireCodec.decode(Listing.self, from: Array(line.utf8)).workers.count == 4)
    }
  }
}

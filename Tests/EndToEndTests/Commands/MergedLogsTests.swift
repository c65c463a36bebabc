import Glibc
import JSONLines
import Linux
import TestSupport
import Testing

@Suite("The output of several workers in one stream") struct MergedLogsTests {
  private static let two = """
    policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
    workers:
      first: { command: [sh, -c, "echo one; exec sleep 690"] }
      second-one: { command: [sh, -c, "echo two; exec sleep 690"] }
      ended: { command: [sh, -c, "printf three; exit 3"], restart: { when: no } }
    """

  private func started() throws -> TestDaemon {
    let daemon = try TestDaemon(Self.two)
    for (name, text) in [("first", "one"), ("second-one", "two"), ("ended", "three")] {
      #expect(try eventually { try daemon.done("logs", name).contains(text) })
    }
    return daemon
  }

  @Test(
    "Without a name `logs` shows each worker's lines after its name, and a last line without an end"
  )
  func all() throws {
    let daemon = try started()
    let lines = Set(try daemon.done("logs").split(separator: "\n").map(String.init))
    #expect(lines == ["first      | one", "second-one | two", "ended      | three"])
    #expect(
      try daemon.done("logs", "--no-prefix", "first", "second-one").split(separator: "\n").sorted()
        == ["one", "two"])
    #expect(try daemon.done("logs", "s*") == "second-one | two\n")
    #expect(try daemon.verb("logs", "none*").code == 3)
  }

  @Test("`logs --json` says that a line of more than 64 KiB continues in the next object")
  func longLine() throws {
    let daemon = try TestDaemon(
      #"""
      policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
      workers:
        long: { command: [sh, -c, "head -c 70000 /dev/zero | tr '\\0' x; echo; exec sleep 690"] }
      """#)
    var lines: [JSON] = []
    let isComplete = try eventually {
      lines = try daemon.done("logs", "--json", "long").split(separator: "\n")
        .compactMap { JSON(Array($0.utf8)) }
      return lines.map { $0["text"]?.text?.utf8.count } == [65_536, 70_000 - 65_536]
    }
    #expect(isComplete)
    #expect(lines.map { $0["isCut"] } == [JSON.bool(true), nil])
  }

  @Test("`logs --since` leaves out what is older, and `--timestamps` says when a line was written")
  func since() throws {
    let daemon = try started()
    let shown = try daemon.done("logs", "--since", "1h", "--timestamps", "first")
    #expect(shown.hasSuffix("Z one\n") && shown.hasPrefix("20"), "\(shown)")
    // As if a day had passed.
    let log = "\(daemon.state)/logs/ended.log"
    _ = try Command(arguments: ["touch", "-d", "1 day ago", log]).run(in: daemon.scratch)
    let times = "\(daemon.state)/logs/ended.times"
    if !isAbsent(times) { unlink(times) }
    #expect(try daemon.done("logs", "--since", "1h", "ended") == "")
    #expect(try daemon.done("logs", "--since", "48h", "ended") == "three\n")
  }

  @Test("The daemon notes when a worker writes, and a later `--since` finds what follows")
  func noted() throws {
    let daemon = try TestDaemon(
      """
      policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
      workers:
        talker: { command: [sh, -c, "while :; do echo line; sleep 0.2; done"] }
      """)
    let times = "\(daemon.state)/logs/talker.times"
    #expect(
      try eventually(within: .seconds(60)) {
        try !isAbsent(times) && readText(times).split(separator: "\n").count >= 3
      })
    var all: [Substring] = []
    // A line may not have come yet after the last time.
    let hasThree = try eventually(within: .seconds(60)) {
      all = try daemon.done("logs", "-n", "all", "--timestamps", "talker").split(separator: "\n")
      return Set(all.map { $0.prefix(24) }).count >= 3
    }
    let recent = try daemon.done("logs", "--since", "1s", "talker").split(separator: "\n")
    #expect(hasThree && recent.count < all.count, "\(all)")
  }

  @Test("`logs -f` shows a worker that is added while another one writes all the time")
  func addedToTalker() throws {
    let daemon = try TestDaemon(
      """
      policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
      workers:
        talker: { command: [sh, -c, "while :; do echo line; sleep 0.2; done"] }
      """)
    #expect(try eventually { try daemon.done("logs", "talker").contains("line") })
    let output = daemon.scratch.uniquePath("out")
    let process = try Command.dormouse(["logs", "--socket", daemon.socket, "-f"]).start(
      output: output, error: daemon.scratch.uniquePath("err"))
    #expect(try eventually { try readText(output).contains("line") })
    try daemon.done("run", "late", "--", "sh", "-c", "echo hello; exec sleep 690")
    #expect(try eventually { try readText(output).contains("hello") })
    kill(process.pid, SIGTERM)
    try process.wait(.seconds(60))
  }

  @Test("`logs -f` shows a worker that is added later, and ends when the daemon has ended")
  func follow() throws {
    let daemon = try started()
    let output = daemon.scratch.uniquePath("out")
    let error = daemon.scratch.uniquePath("err")
    let process = try Command.dormouse(["logs", "--socket", daemon.socket, "-f", "-t"]).start(
      output: output, error: error)
    #expect(try eventually { try readText(output).contains("two") })
    try daemon.done("run", "late", "--", "sh", "-c", "echo hello; exec sleep 690")
    let hasArrived = try eventually {
      try readText(output).split(separator: "\n").contains {
        $0.hasPrefix("late") && $0.hasSuffix("Z hello")
      }
    }
    let text = try readText(output)
    #expect(hasArrived, "\(text)")
    try daemon.done("shutdown")
    #expect(try process.wait(.seconds(60)) == 0)
    #expect(try readText(error).contains("the daemon has ended"))
  }
}

import Control
import TestSupport
import Testing

/// Output fits a terminal of 80 columns; a file or a pipe gets all columns.
@Suite("Output in a terminal of 80 columns") struct TerminalWidthTests {
  private func lines(
    _ arguments: [String], _ scratch: Scratch, columns: Int, variables: [String: String] = [:],
    code: Int32 = 0
  ) throws -> [String] {
    var command = Command(
      arguments: [
        TestMachine.python, TestMachine.fixture("pty_run.py"), "\(columns)", "", "", "--",
      ]
        + [TestMachine.executable] + arguments)
    command.environment.merge(variables) { $1 }
    let outcome = try command.run(in: scratch, limit: .seconds(150))
    #expect(outcome.code == code, "\(outcome)")
    return outcome.output.split(separator: "\n", omittingEmptySubsequences: false).map {
      Self.withoutColours(String($0))
    }
  }

  private static func withoutColours(_ line: String) -> String {
    var result = ""
    var isEscape = false
    for character in line {
      if character == "\u{1B}" { isEscape = true }
      if !isEscape { result.append(character) }
      if isEscape, character.isLetter { isEscape = false }
    }
    return result
  }

  @Test("`ps` shows whole reasons in 80 columns, and no verb prints a line wider than the terminal")
  func verbs() throws {
    let daemon = try TestDaemon(
      """
      policy_overrides: { background: { suspend_after: 1h }, hibernate: { after: never } }
      workers:
        a-worker-that-fails: { command: "sh -c 'exit 3'", restart: { when: always, backoff: { \
      initial: 1h } } }
        sleeper: { command: sleep 680 }
      """)
    let name = "a-worker-that-fails"
    #expect(try eventually { try daemon.worker(name).reason.code == "backing_off" })
    let socket = ["--socket", daemon.socket]
    for columns in [80, 120] {
      for verb in [
        ["ps"], ["report"], ["explain", "sleeper"], ["status", name], ["top", "--once"],
      ] {
        let shown = try lines(verb + socket, daemon.scratch, columns: columns)
        #expect(shown.allSatisfy { $0.count <= columns }, "\(verb): \(shown)")
      }
    }
    let narrow = try lines(["ps"] + socket, daemon.scratch, columns: 80)
    let text = narrow.joined(separator: " ").split(separator: " ").joined(separator: " ")
    #expect(text.contains("exited with status 3"), "\(narrow)")
    // COLUMNS overrides the terminal's width, and has no effect on a file.
    let wide = try lines(
      ["ps"] + socket, daemon.scratch, columns: 80, variables: ["COLUMNS": "200"])
    #expect(wide.contains { $0.count > 80 && $0.contains("exited with status 3") }, "\(wide)")
    #expect(try daemon.done("ps", "--wide").contains("BAND"))
  }

  @Test("Wrong arguments are reported within the terminal's width, with what was expected")
  func usage() throws {
    let scratch = try Scratch()
    for columns in [80, 120] {
      for (arguments, expected) in [
        (["explain", "--worker", "web"], "`dormouse explain web`"),
        (["explain"], "name a worker, or ask for --next or --savings"),
        (["explain", "--savings", "--next"], "one of the three"),
        (["simulate", "day.csv"], "--trace FILE reads a trace"),
        (["simulate", "--since", "1h"], "need --journal"), (["ps", "--stat", "x"], "--state"),
        (["events", "--since", "x"], "such as 90s, 30m"),
      ] {
        let shown = try lines(arguments, scratch, columns: columns, code: 64)
        #expect(shown.allSatisfy { $0.count <= columns }, "\(arguments): \(shown)")
        let text = shown.joined(separator: " ").split(separator: " ").joined(separator: " ")
        #expect(text.contains(expected) && text.contains("Usage: dormouse"), "\(shown)")
      }
    }
    let shown = try lines(
      ["policy", "show", "--effective", "standard"], scratch, columns: 80)
    #expect(shown.allSatisfy { $0.count <= 80 }, "\(shown)")
  }

  @Test("`simulate` puts columns that don't fit into a second block")
  func simulate() throws {
    let scratch = try Scratch()
    let arguments = [
      "simulate", "--generate", "zipf", "--workers", "20", "--hours", "0.2", "--policy",
      "ios-5,iphone-os-3",
    ]
    let shown = try lines(arguments, scratch, columns: 80)
    // Progress, which is rewritten in place, comes first.
    let table = try #require(shown.firstIndex { $0.hasPrefix("policy ") })
    #expect(shown[table...].allSatisfy { $0.count <= 80 }, "\(shown)")
    #expect(shown.count { $0.hasPrefix("policy ") } > 1, "\(shown)")
    let plain = try Command.dormouse(arguments).run(in: scratch)
    #expect(plain.output.split(separator: "\n").count { $0.hasPrefix("policy ") } == 1)
  }
}

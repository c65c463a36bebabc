import Foundation
import Linux
import TestSupport
import Testing

/// Runs the commands and checks the configurations of README and docs.
@Suite("Commands and configurations of the documentation") struct DocumentedCommandTests {
  @Test func `The README's commands, run in order, print what it shows`() throws {
    let page = try Page("README.md")
    let commands = page.commands(
      after: "## Try it on your own program", before: "## Before you rely on it")
    #expect(commands.count >= 8)
    let output = try Self.run(commands, in: page)
    #expect(output.contains("web is hibernated in "))
    #expect(output.contains("a connection on port"))
    #expect(output.contains("bot is running"))
  }

  @Test func `The first commands of the README start a worker that answers`() throws {
    let page = try Page("README.md")
    let commands = page.commands(after: "# Dormouse", before: "## What it is used for")
    try #require(commands.count == 3)
    // `run` would start a daemon in root's directories. A reader needs longer for the next line
    // than the program for its first.
    let isReady = "for i in $(seq 300); do curl -s http://127.0.0.1:8080/ && break; sleep 0.1; done"
    let output = try Self.run(
      ["dormouse daemon", commands[0], commands[1], isReady, commands[2], "dormouse shutdown"],
      in: page)
    #expect(output.contains("web is running"))
  }

  @Test func `The quick start's commands start, hibernate and wake its first worker`() throws {
    let page = try Page("docs/quick-start.md")
    let commands = page.commands(after: "## One worker", before: "## A configuration")
    #expect(commands.count == 4)
    let output = try Self.run(commands + ["dormouse shutdown"], in: page)
    #expect(output.contains("web is hibernated in "))
  }

  @Test func `The quick start's configuration runs as it is printed`() throws {
    let page = try Page("docs/quick-start.md")
    let commands = page.commands(after: "## A configuration", before: "## Which policy?")
    #expect(commands.count == 2)
    let output = try Self.run(
      commands + ["dormouse hibernate notes", "dormouse ps", "dormouse shutdown"], in: page,
      workers: ["files", "notes"])
    #expect(output.contains("notes is hibernated in "), "\(output)")
  }

  @Test("`policy check` accepts every configuration in the documentation")
  func configurations() throws {
    var count = 0
    let docs = try listDirectory("\(TestMachine.root)/docs").filter { $0.hasSuffix(".md") }
    let others = ["README.md", "Examples/Breadcrumbs/README.md", "Examples/consume/README.md"]
    for name in others + docs.map({ "docs/\($0)" }) {
      for text in try Page(name).blocks("yaml") {
        count += 1
        let scratch = try Scratch()
        try Descriptor.open("\(scratch.path)/dormouse.yaml", O_WRONLY | O_CREAT, mode: 0o600)
          .writeAll(text)
        let outcome = try Command.dormouse(["policy", "check", "\(scratch.path)/dormouse.yaml"])
          .run(in: scratch)
        #expect(outcome.code == 0, "\(name):\n\(text)\n\(outcome.error)")
      }
    }
    #expect(count >= 7)
  }

  private struct Page {
    let text: String

    init(_ name: String) throws { text = try readText("\(TestMachine.root)/\(name)") }

    /// The text of each fenced block of this kind.
    func blocks(_ kind: String, of section: Substring? = nil) -> [String] {
      let pieces = (section ?? text[...]).components(separatedBy: "\n```")
      return pieces.indices.dropFirst().filter { $0 % 2 == 1 && pieces[$0].hasPrefix("\(kind)\n") }
        .map { String(pieces[$0].dropFirst(kind.count + 1)) + "\n" }
    }

    /// The text after `$ ` in the section's `console` blocks.
    func commands(after start: String, before end: String) -> [String] {
      guard let begins = text.range(of: start), let ends = text.range(of: end) else { return [] }
      let section = text[begins.upperBound..<ends.lowerBound]
      return blocks("console", of: section).flatMap { $0.split(separator: "\n") }
        .filter { $0.hasPrefix("$ ") }.map { String($0.dropFirst(2)) }
    }
  }

  /// Runs the commands, each of which must succeed; their output.
  private static func run(
    _ commands: [String], in page: Page, workers: [String] = ["web"]
  ) throws -> String {
    let scratch = try Scratch()
    let (port, second) = (try freePort(), try freePort())
    func ported(_ text: String) -> String {
      // In one go: the first port may have the other one's digits, such as 37000.
      text.replacing(/8080|7000/) { $0.output == "8080" ? "\(port)" : "\(second)" }
    }
    for text in page.blocks("yaml").prefix(1) {
      try Descriptor.open("\(scratch.path)/dormouse.yaml", O_WRONLY | O_CREAT, mode: 0o600)
        .writeAll(ported(text))
    }
    var lines = [
      "set -eu", "cd '\(scratch.path)'", "export DORMOUSE_CONTROL_SOCKET='\(scratch.path)/s'",
      "export XDG_STATE_HOME='\(scratch.path)/state' XDG_CONFIG_HOME='\(scratch.path)/config'",
      "trap 'dormouse shutdown >/dev/null 2>&1 || :' EXIT",
      // The verbs find the daemon by the socket above; root's own directories stay untouched.
      "dormouse() { verb=$1; shift; case $verb in daemon) set -- --state-directory state \"$@\";;"
        + " bench) set -- --rounds 2 \"$@\";; esac; '\(TestMachine.executable)' $verb \"$@\"; }",
      "command -v curl >/dev/null || curl() {"
        + " python3 -c 'import sys, urllib.request as r; r.urlopen(sys.argv[1]).read()' \"$2\"; }",
    ]
    for command in commands {
      // A reader has another terminal for it.
      let isDaemon = command.hasPrefix("dormouse daemon")
      lines.append(ported(command) + (isDaemon ? " &" : ""))
      if isDaemon {
        lines.append(
          "for i in $(seq 300); do dormouse ps >/dev/null 2>&1 && break; sleep 0.1; done")
        if command.contains("--config") {
          lines += workers.map { "dormouse start \($0)" }
        }
      }
    }
    let outcome = try Command(arguments: ["bash", "-c", lines.joined(separator: "\n")])
      .run(in: scratch, limit: .seconds(120))
    #expect(outcome.code == 0, "\(outcome.output)\n\(outcome.error)")
    return outcome.output
  }
}

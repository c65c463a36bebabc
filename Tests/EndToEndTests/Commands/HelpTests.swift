import JSONLines
import TestSupport
import Testing

/// What `--help` prints of each verb in a terminal.
@Suite("Help of the verbs") struct HelpTests {
  private static let needed = ["doctor", "daemon", "run", "ps", "hibernate", "wake", "explain"]

  /// Each verb that is shown, also those of other verbs: `policy`, `policy check`.
  private func verbs(_ scratch: Scratch) throws -> [String] {
    let outcome = try Command(arguments: [TestMachine.executable, "--experimental-dump-help"])
      .run(in: scratch)
    let root = try #require(JSON(Array(outcome.output.utf8))?["command"])
    var names: [String] = []
    func visit(_ command: JSON, _ path: String) {
      for each in command["subcommands"]?.elements ?? [] where each["shouldDisplay"] != .bool(false)
      {
        let name = (path.isEmpty ? "" : path + " ") + (each["commandName"]?.text ?? "?")
        if name == "help" { continue }
        names.append(name)
        visit(each, name)
      }
    }
    visit(root, "")
    #expect(names.count > 40)
    return names
  }

  /// The help of each verb, in a terminal.
  private func pages(
    of verbs: [String], _ scratch: Scratch, columns: Int
  ) throws -> [(verb: String, lines: [String])] {
    let mark = "-- next --"
    let script = verbs.map { "'\(TestMachine.executable)' \($0) --help && echo '\(mark)'" }
    let outcome = try Command(
      arguments: [
        TestMachine.python, TestMachine.fixture("pty_run.py"), "\(columns)", "", "", "--", "sh",
        "-c", script.joined(separator: "\n"),
      ]
    ).run(in: scratch, limit: .seconds(150))
    #expect(outcome.code == 0, "\(outcome)")
    var pages: [[String]] = [[]]
    for line in outcome.output.split(separator: "\n", omittingEmptySubsequences: false) {
      // A terminal ends lines with a carriage return as well.
      let text = line.hasSuffix("\r") ? String(line.dropLast()) : String(line)
      if text == mark { pages.append([]) } else { pages[pages.count - 1].append(text) }
    }
    #expect(pages.count == verbs.count + 1, "\(outcome)")
    return Array(zip(verbs, pages))
  }

  @Test(
    "The usage is first, and no line is wider than a terminal of 70, 80 or 120 columns",
    arguments: [70, 80, 120])
  func lines(columns: Int) throws {
    let scratch = try Scratch()
    for (verb, lines) in try pages(of: verbs(scratch), scratch, columns: columns) {
      #expect(lines.first?.hasPrefix("USAGE: dormouse \(verb)") == true, "\(lines)")
      // An example is copied, and stays whole.
      let text = columns < 80 ? lines.prefix { $0 != "EXAMPLES:" } : lines[...]
      let long = text.filter { $0.count > columns }
      #expect(long.isEmpty, "\(verb): \(long)")
    }
  }

  @Test func `Each option has a sentence, and those of all verbs are last`() throws {
    let scratch = try Scratch()
    for (verb, lines) in try pages(of: verbs(scratch), scratch, columns: 1000) {
      guard let start = lines.firstIndex(of: "OPTIONS:") else { continue }
      let entries = lines[(start + 1)...].prefix { $0.hasPrefix(" ") }
      // One that is too long for its column has its text on the next line.
      let names = entries.filter { $0.hasPrefix("  -") }.map {
        $0.split(separator: " ").last { $0.hasPrefix("--") && $0.count > 2 }.map(String.init) ?? ""
      }
      let common = ["--json", "--socket", "--project", "--version", "--help"].filter { name in
        entries.contains { $0.hasPrefix("  \(name) ") || $0.contains(", \(name) ") }
      }
      if !["daemon", "wrap", "policy schema"].contains(verb) {
        let tail = entries.filter { $0.hasPrefix("  -") }.suffix(common.count)
        for (name, line) in zip(common, tail) {
          #expect(line.contains(name), "\(verb): \(name) isn't last: \(names)")
        }
      }
      for entry in entries {
        let text = entry.dropFirst(26).drop { $0 == " " }
        // A name that is too long for its column is alone on its line.
        if entry.hasPrefix("  -"), text.isEmpty || entry.dropFirst(25).first != " " { continue }
        if entry.hasPrefix("  -"), entry.dropFirst(2).prefix(23).allSatisfy({ $0 != " " }) {
          continue
        }
        let isSentence = text.first.map { $0.isUppercase || $0.isNumber } ?? false
        #expect(isSentence && (text.hasSuffix(".") || text.hasSuffix(")")), "\(verb): \(entry)")
      }
    }
  }

  @Test("The verbs that a new user needs have examples, and each example is of a verb that exists")
  func examples() throws {
    let scratch = try Scratch()
    let verbs = try verbs(scratch)
    for (verb, lines) in try pages(of: verbs, scratch, columns: 80) {
      let start = lines.firstIndex(of: "EXAMPLES:")
      if Self.needed.contains(verb) { #expect(start != nil, "\(verb)") }
      guard let start else { continue }
      let examples = lines[(start + 1)...].filter { !$0.isEmpty }
      #expect(!examples.isEmpty, "\(verb)")
      for example in examples {
        let namesVerb = verbs.contains { example.contains("dormouse \($0)") }
        #expect(example.hasPrefix("  ") && namesVerb, "\(verb): \(example)")
      }
    }
  }
}

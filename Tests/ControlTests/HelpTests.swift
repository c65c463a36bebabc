import ArgumentParser
import Testing

@testable import dormouse

/// What `--help` prints of each verb.
@Suite("Help of the verbs") struct HelpTests {
  private static let needed = ["doctor", "daemon", "run", "ps", "hibernate", "wake", "explain"]

  /// Each verb that is shown, also those of other verbs: `policy`, `policy check`.
  private let pages: [(verb: String, help: VerbHelp)]

  init() throws {
    var names: [String] = []
    func visit(_ command: any ParsableCommand.Type, _ path: String) throws {
      for each in command.configuration.subcommands where each.configuration.shouldDisplay {
        let name = (path.isEmpty ? "" : path + " ") + (try #require(each.configuration.commandName))
        names.append(name)
        try visit(each, name)
      }
    }
    try visit(DormouseCommand.self, "")
    #expect(names.count > 40)
    pages = try names.map { verb in
      let arguments = verb.split(separator: " ").map(String.init) + ["--help"]
      let error = try #require(throws: (any Error).self) {
        var help = try DormouseCommand.parseAsRoot(arguments)
        try help.run()
      }
      return (verb, try #require(VerbHelp(for: error), "\(verb)"))
    }
  }

  private func lines(of help: VerbHelp, columns: Int) -> [String] {
    help.text(width: columns).split(separator: "\n", omittingEmptySubsequences: false)
      .map(String.init)
  }

  @Test("The usage is first, and no line is wider than a terminal of 70, 80 or 120 columns")
  func widths() {
    for (verb, help) in pages {
      for columns in [70, 80, 120] {
        let lines = lines(of: help, columns: columns)
        #expect(lines.first?.hasPrefix("USAGE: dormouse \(verb)") == true, "\(lines)")
        // An example is copied, and stays whole.
        let text = columns < 80 ? lines.prefix { $0 != "EXAMPLES:" } : lines[...]
        let long = text.filter { $0.count > columns }
        #expect(long.isEmpty, "\(verb): \(long)")
      }
    }
  }

  @Test func `Each option has a sentence, and those of all verbs are last`() {
    for (verb, help) in pages {
      let lines = lines(of: help, columns: 1000)
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
  func examples() {
    for (verb, help) in pages {
      let lines = lines(of: help, columns: 80)
      let start = lines.firstIndex(of: "EXAMPLES:")
      if Self.needed.contains(verb) { #expect(start != nil, "\(verb)") }
      guard let start else { continue }
      let examples = lines[(start + 1)...].filter { !$0.isEmpty }
      #expect(!examples.isEmpty, "\(verb)")
      for example in examples {
        let namesVerb = pages.contains { example.contains("dormouse \($0.verb)") }
        #expect(example.hasPrefix("  ") && namesVerb, "\(verb): \(example)")
      }
    }
  }
}

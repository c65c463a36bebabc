import TestSupport
import Testing

@Suite("The table of rules")
struct RuleTableTests {
  /// The file and the name of the test in each row's last cell.
  private static func tests() throws -> [(file: String, name: String)] {
    try SourceTree.text("docs/engine.md").split(separator: "\n").compactMap { line in
      let cells = line.split(separator: "|").map { $0.drop { $0 == " " } }
      guard cells.count == 4, let cell = cells.last, cell.hasPrefix("`") else { return nil }
      let parts = cell.dropFirst().split(separator: "`: ", maxSplits: 1)
      guard parts.count == 2 else { return nil }
      return (String(parts[0]), parts[1].split(separator: " ").joined(separator: " "))
    }
  }

  @Test func `Every test that docs/engine.md names exists`() throws {
    let tests = try Self.tests()
    #expect(tests.count > 40)
    for test in tests {
      let path = try #require(SourceTree.test(test.file), "there is no \(test.file)")
      let source = try SourceTree.text(path)
      let isThere = source.contains("\"\(test.name)\"") || source.contains("`\(test.name)`")
      #expect(isThere, "\(test.file) has no test \(test.name)")
    }
  }
}

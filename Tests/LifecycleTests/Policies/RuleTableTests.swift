import Glibc
import TestSupport
import Testing

@Suite("The table of rules")
struct RuleTableTests {
  private static func text(_ path: String) throws -> String {
    let file = try #require(fopen("\(SourceTree.root)/\(path)", "r"), "\(path) isn't there")
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = fread(&buffer, 1, buffer.count, file)
      if count == 0 { return String(decoding: bytes, as: UTF8.self) }
      bytes += buffer[..<count]
    }
  }

  /// The file and the name of the test in each row's last cell.
  private static func tests() throws -> [(file: String, name: String)] {
    try text("docs/engine.md").split(separator: "\n").compactMap { line in
      let cells = line.split(separator: "|").map { $0.drop { $0 == " " } }
      guard cells.count == 4, let cell = cells.last, cell.hasPrefix("`") else { return nil }
      let parts = cell.dropFirst().split(separator: "`: ", maxSplits: 1)
      guard parts.count == 2 else { return nil }
      return (String(parts[0]), String(parts[1].drop { $0 == " " }.trimmedEnd))
    }
  }

  @Test func `Every test that docs/engine.md names exists`() throws {
    let tests = try Self.tests()
    #expect(tests.count > 40)
    for test in tests {
      let path = try #require(SourceTree.test(test.file), "there is no \(test.file)")
      let source = try Self.text(path)
      let isThere = source.contains("\"\(test.name)\"") || source.contains("`\(test.name)`")
      #expect(isThere, "\(test.file) has no test \(test.name)")
    }
  }
}

extension Substring {
  fileprivate var trimmedEnd: Substring {
    var text = self
    while text.last == " " { text.removeLast() }
    return text
  }
}

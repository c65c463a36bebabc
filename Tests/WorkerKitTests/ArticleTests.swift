import Linux
import Testing

/// Checks that the articles show the code that is compiled in `ArticleSamples`.
@Suite struct ArticleTests {
  private static let root = String(
    #filePath.split(separator: "/").dropLast(3).joined(separator: "/"))

  private static let articles = [
    "WorkerKit", "InTheForeground", "InTheBackground", "CachingWithoutHoarding",
  ]

  /// The lines of a file, without their indentation.
  private static func lines(_ path: String) throws -> [String] {
    try readText("/\(root)/\(path)").split(separator: "\n", omittingEmptySubsequences: false)
      .map { String($0.drop { $0 == " " }) }
  }

  @Test(arguments: articles) func `Each sample of the articles is in ArticleSamples`(_ name: String)
    throws
  {
    let samples = try Self.lines("Tests/WorkerKitTests/ArticleSamples.swift")
    let article = try Self.lines("Sources/WorkerKit/WorkerKit.docc/\(name).md")
    var sample: [String]?
    var count = 0
    for line in article {
      if line == "```swift" {
        sample = []
      } else if line == "```", let block = sample {
        #expect(Self.contains(samples, block), "\(block.joined(separator: "\n"))")
        sample = nil
        count += 1
      } else {
        sample?.append(line)
      }
    }
    #expect(count > 0)
    #expect(sample == nil)
  }

  private static func contains(_ lines: [String], _ block: [String]) -> Bool {
    lines.indices.contains { lines[$0...].starts(with: block) }
  }
}

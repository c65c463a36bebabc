import Testing

@testable import PolicyFile

@Suite struct `The documentation` {
  private static func document(_ name: String) throws -> String {
    let path = FilePaths.resolve("../docs/\(name)", from: shippedDirectory)
    return try FileContents.read(path).get()
  }

  @Test(arguments: `Bad values`.keys) func `lists every key`(key: String) throws {
    let text = try Self.document("policy-files.md")
    let parts = key.split(separator: ".").map(String.init)
    let leaf = parts.last ?? key
    // Keys of small sections stand with them: `disk.budget`.
    let spellings = [leaf, parts.suffix(2).joined(separator: ".")].map { "`\($0)`" }
    let isSection = ["disk", "compression", "stall", "safe_point"].contains(leaf)
    #expect(spellings.contains { text.contains($0) } || isSection && text.contains("`\(leaf)."))
  }

  @Test func `has an example that works`() throws {
    let text = try Self.document("configuration.md")
    let start = try #require(text.firstRange(of: "```yaml\n")?.upperBound)
    let end = try #require(text[start...].firstRange(of: "```")?.lowerBound)
    let result = configuration(String(text[start..<end]))
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    #expect(result.value?.workers.map(\.name) == ["web", "cache"])
  }
}

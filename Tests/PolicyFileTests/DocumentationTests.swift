import Testing

@testable import PolicyFile

@Suite struct `The documentation` {
  fileprivate static func document(_ name: String) throws -> String {
    let path = FilePaths.resolve("../docs/\(name)", from: shippedDirectory)
    return try FileContents.read(path).get()
  }

  @Test(arguments: `Bad values`.keys) func `The page about policy files lists every key`(
    key: String
  ) throws {
    let text = try Self.document("policy-files.md")
    let parts = key.split(separator: ".").map(String.init)
    let leaf = parts.last ?? key
    // Keys of small sections stand with them: `disk.budget`.
    let spellings = [leaf, parts.suffix(2).joined(separator: ".")].map { "`\($0)`" }
    let isSection = ["disk", "compression", "stall", "safe_point"].contains(leaf)
    #expect(spellings.contains { text.contains($0) } || isSection && text.contains("`\(leaf)."))
  }

  @Test func `The example in the page about the configuration works`() throws {
    let text = try Self.document("configuration.md")
    let start = try #require(text.firstRange(of: "```yaml\n")?.upperBound)
    let end = try #require(text[start...].firstRange(of: "```")?.lowerBound)
    let result = configuration(String(text[start..<end]))
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    #expect(result.value?.workers.map(\.name) == ["web", "cache"])
  }
}

extension `The documentation` {
  @Test(
    arguments: KeyExplorer.worker().paths().filter {
      !$0.hasPrefix("policy.") && !$0.hasPrefix("liveness.") && !$0.hasPrefix("on.")
    })
  func `The page about the configuration lists every key of a worker`(key: String) throws {
    let text = try Self.document("configuration.md")
    let leaf = key.split(separator: ".").last.map(String.init) ?? key
    #expect(text.contains("`\(leaf)`") || text.contains("`\(leaf):") || text.contains("\(leaf): "))
  }

  @Test(arguments: KeyExplorer.worker().paths().filter { $0.hasPrefix("on.") })
  func `The page about commands for events lists every event of a worker`(key: String) throws {
    #expect(try Self.document("hooks.md").contains("`\(key.dropFirst(3))`"))
  }

  @Test(arguments: WorkerConfiguration.notYetEffective)
  func `The page about the configuration marks every key without effect`(key: String) throws {
    let text = try Self.document("configuration.md")
    let parts = key.split(separator: ".")
    if parts.count == 1 {
      // `user` and `group` share a line.
      #expect(text.contains("`\(key)` ¹") || text.contains("`\(key)`, `group` ¹"))
    } else {
      let note = text.split(separator: "\n\n").first { $0.hasPrefix("¹") }
      let family = ["Seconds", "Threshold"].first { key.hasSuffix($0) }.map { "`…\($0)`" }
      #expect(note?.contains(family ?? "`\(parts[1])`") == true)
    }
  }
}

extension `The documentation` {
  @Test(arguments: KeyExplorer.adoptionRule().paths().filter { !$0.hasPrefix("policy.") })
  func `The page about the configuration lists every key of a rule of adoption`(key: String) throws
  {
    let text = try Self.document("configuration.md")
    let section = try #require(text.split(separator: "\n## ").first { $0.hasPrefix("Adopt\n") })
    let leaf = key.split(separator: ".").last.map(String.init) ?? key
    #expect(section.contains("| `\(leaf)` |"), "\(key)")
  }

  @Test func `The example in the page about adoption works`() throws {
    let text = try Self.document("adoption.md")
    let start = try #require(text.firstRange(of: "```yaml\n")?.upperBound)
    let end = try #require(text[start...].firstRange(of: "```")?.lowerBound)
    let result = configuration(String(text[start..<end]))
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    #expect(result.value?.adoption.map(\.name) == ["tsserver", "jupyter"])
  }
}

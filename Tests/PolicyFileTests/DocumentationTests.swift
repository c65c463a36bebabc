import Glibc
import Policy
import Testing

@testable import PolicyFile

@Suite struct `The documentation` {
  fileprivate static func document(_ name: String) throws -> String {
    let path = FilePaths.resolve("../docs/\(name)", from: shippedDirectory)
    return try FileContents.read(path).get()
  }

  @Test(arguments: [
    ("configuration.md", ["web", "cache"]), ("adoption.md", ["tsserver", "jupyter"]),
  ])
  func `The first example of a page works`(page: String, names: [String]) throws {
    let text = try Self.document(page)
    let start = try #require(text.firstRange(of: "```yaml\n")?.upperBound)
    let end = try #require(text[start...].firstRange(of: "```")?.lowerBound)
    let result = configuration(String(text[start..<end]))
    #expect(result.diagnostics.isEmpty, "\(result.rendered)")
    let read = try #require(result.value)
    #expect(read.workers.map(\.name) + read.adoption.map(\.name) == names)
  }

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

  @Test(arguments: KeyExplorer.adoptionRule().paths().filter { !$0.hasPrefix("policy.") })
  func `The page about the configuration lists every key of a rule of adoption`(key: String) throws
  {
    let text = try Self.document("configuration.md")
    let section = try #require(text.split(separator: "\n## ").first { $0.hasPrefix("Adopt\n") })
    let leaf = key.split(separator: ".").last.map(String.init) ?? key
    #expect(section.contains("| `\(leaf)` |"), "\(key)")
  }
}

/// The tables of keys in the documentation are made from the declarations of the keys. With
/// `DORMOUSE_WRITE_DOCS=1` this suite writes them.
@Suite struct `The tables of keys in the documentation` {
  /// Returns the tables of a page in their order, each with its heading and its expected rows.
  private static func tables(_ name: String) -> [(heading: String, index: Int, rows: [String])] {
    guard name == "policy-files.md" else {
      let plain = WorkerConfiguration(name: "w", command: [])
      let usual = Dictionary(
        WorkerKeys.all.compactMap { key in
          key.write(plain)?.nonEmpty.map { (key.name, "`\($0.flow)`") }
        }
      ) { $1 }
      let keys = KeyExplorer.worker().keys
      let journal = MappingShape(JournalConfiguration.keys).keys
      let values = Dictionary(
        JournalConfiguration.keys.pairs(of: JournalConfiguration()).map { ($0, "`\($1.flow)`") }
      ) { $1 }
      return [
        ("Workers", 0, keys.flatMap { rows($0, under: "", in: "", isDeep: false, usual) }),
        ("Journal", 0, journal.flatMap { rows($0, under: "", in: "", isDeep: false, values) }),
      ]
    }
    let policy = KeyExplorer.policy(.policy)
    let values = Dictionary(
      PolicyFile.values(of: LifecyclePolicy()).map { ($0.path, "`\($0.text)`") }
    ) { $1 }
    let top = policy.keys.filter { if case .mapping = $0.shape { false } else { true } }
    let sections = policy.keys.compactMap { key -> (String, Int, [String])? in
      guard case .mapping(let inner) = key.shape else { return nil }
      let rows = inner.keys.flatMap {
        Self.rows($0, under: "", in: key.name, isDeep: key.name != "pressure", values)
      }
      return (key.name, 0, rows)
    }
    let conditions = policy["pressure.warning"]?.inner?.keys.flatMap {
      rows($0, under: "", in: "", isDeep: true, [:])
    }
    return [("Top", 0, top.flatMap { rows($0, under: "", in: "", isDeep: true, values) })]
      + sections + [("pressure", 1, conditions ?? [])]
  }

  /// Returns the rows of a key.
  ///
  /// - Parameter isDeep: true if the keys of a mapping that is replaced as a whole have rows, too.
  private static func rows(
    _ key: MappingShape.Entry, under prefix: String, in section: String, isDeep: Bool,
    _ values: [String: String]
  ) -> [String] {
    let name = prefix + key.name
    let inner = isDeep ? key.shape.inner?.keys ?? [] : []
    let parts = inner.flatMap {
      rows($0, under: "\(name).", in: section, isDeep: isDeep, values)
    }
    if case .mapping = key.shape { return parts }
    let path = section.isEmpty ? name : "\(section).\(name)"
    let usual = key.usual ?? values[path] ?? "none"
    return ["| `\(name)` | \(key.shape.kind) | \(usual) | \(key.about ?? "") |"] + parts
  }

  @Test(arguments: ["policy-files.md", "configuration.md"])
  func `A page has each key as it is declared`(
    name: String
  ) throws {
    var lines = try `The documentation`.document(name).split(
      separator: "\n", omittingEmptySubsequences: false
    ).map(String.init)
    for (heading, index, rows) in Self.tables(name) {
      let start = try #require(
        lines.firstIndex {
          $0.hasPrefix("#") && $0.hasSuffix(" \(heading)") || $0 == "### `\(heading)`"
        })
      let heads = lines.indices.filter { $0 > start && lines[$0].hasPrefix("|---") }
      let first = try #require(heads.dropFirst(index).first) + 1
      let end = lines[first...].firstIndex { !$0.hasPrefix("|") } ?? lines.endIndex
      #expect(Array(lines[first..<end]) == rows, "\(heading): set DORMOUSE_WRITE_DOCS=1")
      lines.replaceSubrange(first..<end, with: rows)
    }
    guard getenv("DORMOUSE_WRITE_DOCS") != nil else { return }
    let path = FilePaths.resolve("../docs/\(name)", from: shippedDirectory)
    let file = try #require(fopen(path, "w"))
    defer { fclose(file) }
    fputs(lines.joined(separator: "\n"), file)
  }
}

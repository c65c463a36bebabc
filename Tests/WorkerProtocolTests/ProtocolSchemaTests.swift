import JSONLines
import TestSupport
import Testing
import WorkerProtocol

@Suite struct SchemaTests {
  private static func schema() throws -> Schema {
    let text = try SourceTree.text("docs/worker-protocol.schema.json")
    return Schema(root: try #require(JSON(Array(text.utf8))))
  }

  @Test("The daemon's messages match the protocol's schema", arguments: MessageTests.fromDaemon)
  func holdsForTheDaemonsLines(
    _ message: DaemonMessage
  ) throws {
    let json = try #require(JSON(message.line))
    #expect(try Self.schema().problem(json) == nil)
    #expect(try Self.schema().problem(json, at: "toWorker") == nil)
  }

  @Test("A worker's messages match the protocol's schema", arguments: MessageTests.fromWorker)
  func holdsForTheWorkersLines(
    _ message: WorkerMessage
  ) throws {
    let json = try #require(JSON(message.line))
    #expect(try Self.schema().problem(json) == nil)
    #expect(try Self.schema().problem(json, at: "fromWorker") == nil)
  }

  @Test(arguments: MessageTests.senseless)
  func `The protocol's schema refuses the lines that the reader refuses`(_ line: String) throws {
    guard let json = JSON(Array(line.utf8)) else { return }
    #expect(try Self.schema().problem(json, at: "fromWorker") != nil)
  }

  /// Every type of the tables has a definition, and every definition has a type.
  @Test("The protocol's schema and the tables of the protocol's page have the same types")
  func knowsEachTypeOfTheTables() throws {
    let text = try SourceTree.text("docs/worker-protocol.md")
    for (heading, definition) in [
      ("## To the worker", "toWorker"), ("## From the worker", "fromWorker"),
    ] {
      let section = try #require(text.components(after: heading))
      let types = section.split(separator: "\n").compactMap { line -> String? in
        guard line.hasPrefix("| `") else { return nil }
        return line.dropFirst(3).split(separator: "`").first.map(String.init)
      }
      let root = try Self.schema().root
      let references = root["$defs"]?[definition]?["anyOf"]?.elements ?? []
      let known = references.compactMap { reference -> String? in
        let name = reference["$ref"]?.text?.split(separator: "/").last.map(String.init) ?? ""
        return root["$defs"]?[name]?["properties"]?["type"]?["const"]?.text
      }
      // The first line on a connection has no row of its own.
      #expect(Set(types).union(["hello"]) == Set(known))
    }
  }

  @Test func `The lines of the protocol's transcript match its schema`() throws {
    let text = try SourceTree.text("docs/worker-protocol.md")
    let lines = text.split(separator: "\n").filter { $0.hasPrefix("→ ") || $0.hasPrefix("← ") }
    #expect(lines.count > 12)
    for line in lines {
      let bytes = Array(line.dropFirst(2).utf8)
      let json = try #require(JSON(bytes), "\(line)")
      if line.hasPrefix("←") {
        #expect(try DaemonMessage.read(bytes) != nil, "\(line)")
        #expect(try Self.schema().problem(json, at: "toWorker") == nil, "\(line)")
      } else {
        #expect(try WorkerMessage.read(bytes) != nil, "\(line)")
        #expect(try Self.schema().problem(json, at: "fromWorker") == nil, "\(line)")
      }
    }
  }
}

extension String {
  /// Returns the text after a heading, up to the next one of its kind.
  fileprivate func components(after heading: String) -> String? {
    let lines = split(separator: "\n", omittingEmptySubsequences: false)
    guard let start = lines.firstIndex(of: heading[...]) else { return nil }
    return lines[(start + 1)...].prefix { !$0.hasPrefix("## ") }.joined(separator: "\n")
  }
}

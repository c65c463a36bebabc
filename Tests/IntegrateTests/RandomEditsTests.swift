import JSONLines
import TestSupport
import Testing

@testable import Integrate

@Suite("Wrapping in random files") struct RandomEditsTests {
  private static let wrapPrefix = WrapPrefix(
    program: "/usr/bin/dormouse", options: ["--idle-after", "10m"])

  /// Wraps all servers, and undoes it.
  @discardableResult
  private func roundTrip(
    _ text: String, _ format: ConfigDocument.Format,
    _ find: (ConfigValue) -> [CommandLocation] = { MCPServers.find(at: ["m"], in: $0) }
  ) throws -> (old: ConfigDocument, new: ConfigDocument) {
    let old = try ConfigDocument(Array(text.utf8), format)
    let locations = find(old.root)
    let new = try old.applying(
      locations.flatMap { try WrapEdits(document: old, wrapPrefix: Self.wrapPrefix).edits($0) })
    for location in locations {
      #expect(
        try location.command(in: new.root) == Self.wrapPrefix.all + location.command(in: old.root))
    }
    let commands = locations.flatMap(\.paths).map { $0[...] }
    #expect(
      new.root.removing(commands).means(theSameAs: old.root.removing(commands)), "\(text)")
    let undone = try new.applying(
      find(new.root).flatMap { location -> [TextEdit] in
        guard case .split(let table, _, let arguments) = location.shape else { return [] }
        let hadList = old.root[table]?[arguments] != nil
        return try UnwrapEdits(document: new).edits(location, keepsEmptyList: hadList)
      })
    if undone.bytes != old.bytes {
      Issue.record("\(text)\n---\n\(String(decoding: undone.bytes, as: UTF8.self))")
    }
    return (old, new)
  }

  @Test func `Undoing gives the bytes of any JSON file with comments again`() throws {
    var config = RandomConfig(random: TestRandom())
    for _ in 0..<1500 { _ = try roundTrip(config.json(), .json) }
  }

  @Test func `Undoing gives the bytes of any TOML file again`() throws {
    var config = RandomConfig(random: TestRandom())
    for _ in 0..<1500 { _ = try roundTrip(config.toml(), .toml) }
  }

  @Test func `Undoing gives the bytes of any YAML file again`() throws {
    var config = RandomConfig(random: TestRandom())
    for _ in 0..<1000 {
      try roundTrip(config.yaml(isList: false), .yaml)
      try roundTrip(config.yaml(isList: true), .yaml) { MCPServers.ofContinue($0) }
    }
  }

  @Test func `A damaged YAML file is an error with a position in it, or is read`() throws {
    var config = RandomConfig(random: TestRandom())
    for _ in 0..<1000 {
      var bytes = Array(config.yaml(isList: config.chance(50)).utf8)
      for _ in 0...config.count(3) where !bytes.isEmpty {
        let index = Int(config.random.next() % UInt64(bytes.count))
        if config.chance(50) {
          bytes[index] = UInt8(truncatingIfNeeded: config.random.next())
        } else {
          bytes.remove(at: index)
        }
      }
      do throws(ConfigSyntaxError) {
        _ = try ConfigDocument(bytes, .yaml)
      } catch {
        let (line, column) = error.position(in: bytes)
        #expect(line >= 1 && column >= 0 && (0...bytes.count).contains(error.offset))
      }
    }
  }

  @Test func `Another reader of JSON finds only the commands changed`() throws {
    var config = RandomConfig(random: TestRandom(), isStrict: true)
    for _ in 0..<500 {
      let (old, new) = try roundTrip(config.json(), .json)
      var expected = try #require(JSON(old.bytes))
      guard case .object(let servers)? = expected["m"] else { continue }
      let wrapped = servers.map { server in
        var value = server.value
        let command = Self.wrapPrefix.all + [value["command"]?.text ?? ""]
        value.set("command", .string(command[0]))
        let moved = command.dropFirst().map(JSON.string)
        value.set("args", .array(moved + (value["args"]?.elements ?? [])))
        return JSON.Member(server.name, value)
      }
      expected.set("m", .object(wrapped))
      let found = try #require(JSON(new.bytes))
      #expect(Self.sorted(found) == Self.sorted(expected))
    }
  }

  @Test("Undoing restores the meaning of a file that the host has written again in its own way")
  func rewritten() throws {
    var config = RandomConfig(random: TestRandom(), isStrict: true)
    for _ in 0..<500 {
      let (old, new) = try roundTrip(config.json(), .json)
      let lines = try #require(JSON(new.bytes)).line
      let rewritten = try ConfigDocument(lines, .json)
      let undone = try rewritten.applying(
        MCPServers.find(at: ["m"], in: rewritten.root).flatMap { location in
          let hadList = old.root[["m", location.name]]?["args"] != nil
          return try UnwrapEdits(document: rewritten).edits(location, keepsEmptyList: hadList)
        })
      #expect(JSON(undone.bytes) == JSON(old.bytes))
    }
  }

  private static func sorted(_ value: JSON) -> JSON {
    switch value {
    case .array(let values): .array(values.map(sorted))
    case .object(let members):
      .object(
        members.map { JSON.Member($0.name, sorted($0.value)) }.sorted { $0.name < $1.name })
    default: value
    }
  }
}

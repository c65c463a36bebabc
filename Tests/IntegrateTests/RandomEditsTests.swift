import JSONLines
import TestSupport
import Testing

@testable import Integrate

/// Configurations with random values, blanks, comments and line ends.
private struct RandomConfig {
  var random: TestRandom
  /// Without what only JSONC permits.
  var isStrict = false
  var lineEnd = "\n"

  mutating func pick<Element>(_ choices: [Element]) -> Element {
    choices[Int(random.next() % UInt64(choices.count))]
  }

  mutating func chance(_ percent: UInt64) -> Bool { random.next() % 100 < percent }

  mutating func count(_ most: Int) -> Int { Int(random.next() % UInt64(most + 1)) }

  /// Text with quotes, as both formats read it.
  mutating func string() -> String {
    let parts = [
      "a", "npx", "-y", " ", "é", "\\n", "\\\"", "\\\\", "\\u00e9", "#", "//", "/*", "{", "]", ",",
      "${HOME}", "--", "wrap", "😀",
    ]
    return "\"" + (0..<count(4)).map { _ in pick(parts) }.joined() + "\""
  }

  mutating func program() -> String {
    pick([#""npx""#, #""uv\u0078""#, #""./run me""#, #""${HOME}/x""#, #""é""#])
  }

  mutating func list(_ element: (inout RandomConfig) -> String) -> String {
    let elements = (0..<count(4)).map { _ in element(&self) }
    return "[" + elements.map { space() + $0 + space() }.joined(separator: ",")
      + (!isStrict && !elements.isEmpty && chance(20) ? "," : "") + space() + "]"
  }

  // MARK: JSON

  mutating func space() -> String {
    var text = ""
    for _ in 0..<count(2) { text += pick(["", " ", "  ", "\t", lineEnd, lineEnd + "    "]) }
    if !isStrict, chance(15) {
      text += pick(["/* , ] \" */", "// } \" ," + lineEnd, "/**/ "])
    }
    return text
  }

  mutating func value(_ depth: Int) -> String {
    switch random.next() % (depth > 0 ? 6 : 4) {
    case 0: string()
    case 1: pick(["0", "-12", "1.50", "2e9"])
    case 2: pick(["true", "false", "null"])
    case 3: list { $0.string() }
    case 4: list { $0.value(depth - 1) }
    default: object(["a", "b c", "é"].map { ($0, { $0.value(depth - 1) }) })
    }
  }

  mutating func object(
    _ members: [(String, (inout RandomConfig) -> String)]
  ) -> String {
    let texts = members.map { name, value in
      space() + "\"\(name)\"" + space() + ":" + space() + value(&self) + space()
    }
    return "{" + texts.joined(separator: ",")
      + (!isStrict && chance(20) && !texts.isEmpty ? "," : "")
      + space() + "}"
  }

  mutating func server() -> String {
    var members: [(String, (inout RandomConfig) -> String)] = [("command", { $0.program() })]
    if chance(70) { members.append(("args", { $0.list { $0.string() } })) }
    if chance(50) { members.append(("env", { $0.value(1) })) }
    if chance(50) { members.append(("other", { $0.value(2) })) }
    return object(members.shuffled(using: &random))
  }

  mutating func json() -> String {
    lineEnd = pick(["\n", "\r\n"])
    let names = (0..<count(4)).map { "server \($0)" }
    let mark = !isStrict && chance(20) ? "\u{FEFF}" : ""
    return mark + space()
      + object([
        ("before", { $0.value(3) }),
        ("m", { $0.object(names.map { ($0, { $0.server() }) }) }),
        ("after", { $0.value(3) }),
      ]) + space()
  }

  // MARK: TOML

  mutating func tomlComment() -> String { chance(30) ? pick(["  # c ] \" '", "#"]) : "" }

  mutating func tomlString() -> String {
    chance(60)
      ? string() : pick(["'a\\b'", "'''x'y'''", "\"\"\"a\(lineEnd)\"b\" \"\"\"", "''", "'#'"])
  }

  mutating func tomlSpace() -> String {
    pick(["", " ", lineEnd + "  ", " # c, ]\(lineEnd)", "\t"])
  }

  mutating func tomlList() -> String {
    let elements = (0..<count(4)).map { _ in tomlSpace() + tomlString() + tomlSpace() }
    return "[" + elements.joined(separator: ",") + (!elements.isEmpty && chance(30) ? "," : "")
      + tomlSpace() + "]"
  }

  mutating func tomlServer(_ name: String) -> String {
    let prefix = pick(["", "  ", "\t"])
    let equals = pick([" = ", "=", "  =\t"])
    let command = pick([program(), "'npx'", "'''np\(lineEnd)x'''"])
    var members = [("command", command)]
    if chance(70) { members.append(("args", tomlList())) }
    if chance(50) { members.append(("'other key'", tomlString())) }
    if chance(30) { members.append(("env.A", "1979-05-27 07:32:00")) }
    members.shuffle(using: &random)
    let lines = members.map { prefix + $0 + equals + $1 + tomlComment() + lineEnd }.joined()
    switch random.next() % 3 {
    case 0:
      let inline = members.map { "\($0)\(equals)\($1.replacing(lineEnd, with: " "))" }
      if inline.contains(where: { $0.contains("#") || $0.contains("\"\"\"") }) { fallthrough }
      return
        "[m]\(lineEnd)\(name) = { \(inline.joined(separator: ", ")) }\(tomlComment())\(lineEnd)"
    case 1: return "[m . \(name)]\(tomlComment())\(lineEnd)" + lines
    default:
      let dotted = members.map { "\(prefix)\(name) . \($0)\(equals)\($1)\(lineEnd)" }.joined()
      return "[m]\(lineEnd)" + dotted
    }
  }

  mutating func toml() -> String {
    lineEnd = pick(["\n", "\r\n"])
    let text =
      "before = \(tomlList())\(lineEnd)\(tomlComment())\(lineEnd)"
      + tomlServer("s") + "[after]\(lineEnd)x = \(tomlString())"
    return (chance(20) ? "\u{FEFF}" : "") + text + (chance(50) ? lineEnd : "")
  }
}

/// YAML, with and without brackets.
extension RandomConfig {
  fileprivate mutating func yamlText() -> String {
    pick([
      "-y", "a b", "x#y", "\"a, b: {\"", "'it''s # no'", "é", "\"\"", "--", "wrap", "'3000'",
    ])
  }

  fileprivate mutating func yamlFlowList() -> String {
    let comma = pick([", ", ",", " , "])
    return "[" + (0..<count(3)).map { _ in yamlText() }.joined(separator: comma)
      + pick(["]", " ]"])
  }

  fileprivate mutating func yamlComment() -> String { chance(25) ? "  # c ] ' - x" : "" }

  /// The value of `args`, after its colon.
  fileprivate mutating func yamlArguments(_ indent: String) -> String {
    if chance(40) { return " " + yamlFlowList() + yamlComment() + lineEnd }
    let inner = indent + pick(["", "  ", "    "])
    let dash = pick(["- ", "-   "])
    return yamlComment() + lineEnd
      + (0...count(3)).map { _ in
        (chance(15) ? inner + "# - c" + lineEnd : "") + inner + dash
          + (chance(10) ? "|" + lineEnd + inner + "      two" : yamlText() + yamlComment())
          + lineEnd
      }.joined()
  }

  /// - Parameter start: before the first key, in place of the indentation.
  fileprivate mutating func yamlServer(_ indent: String, start: String) -> String {
    let command = pick(["npx", "\"npx\"", "'np x'", "./run me", "/usr/bin/é", "\"a\\x20b\""])
    var members = ["command:\(pick([" ", "  "]))\(command)\(yamlComment())\(lineEnd)"]
    if chance(70) { members.append("args:" + yamlArguments(indent)) }
    if chance(50) { members.append("env:\(lineEnd)\(indent)  A: 1\(lineEnd)") }
    if chance(50) { members.append("'other key': {a: [b, 'c']}\(lineEnd)") }
    members.shuffle(using: &random)
    return members.enumerated().map { ($0 == 0 ? start : indent) + $1 }.joined()
  }

  fileprivate mutating func yaml(isList: Bool) -> String {
    lineEnd = pick(["\n", "\r\n"])
    var text = (chance(20) ? "\u{FEFF}" : "") + "before: [é, '#'] # 😀\(lineEnd)"
    text += isList ? "mcpServers:\(lineEnd)" : "m:\(lineEnd)"
    for index in 0...count(3) {
      if isList {
        let name = "name: 's \(index)'\(lineEnd)"
        text +=
          chance(50)
          ? "- " + name + yamlServer("  ", start: "  ")
          : yamlServer("  ", start: "- ") + "  " + name
        if chance(20) { text += pick(["  ", "    "]) + "# c\(lineEnd)" }
      } else if chance(25) {
        let arguments = chance(60) ? pick([", ", ","]) + "args: " + yamlFlowList() : ""
        let server = "{command: " + pick(["npx", "'npx'"]) + arguments + "}"
        text += "  s\(index): \(server)\(yamlComment())\(lineEnd)"
      } else {
        text += "  s\(index):\(yamlComment())\(lineEnd)" + yamlServer("    ", start: "    ")
      }
    }
    if chance(50) { return text + "after: |\(lineEnd)  - x\(lineEnd)" }
    return chance(50) ? text : String(text.dropLast())
  }
}

@Suite("Wrapping in random files") struct RandomEditsTests {
  private static let words = WrapWords(
    program: "/usr/bin/dormouse", options: ["--idle-after", "10m"])

  /// Wraps all, and undoes it.
  @discardableResult
  private func roundTrip(
    _ text: String, _ format: ConfigDocument.Format,
    _ find: (ConfigValue) -> [CommandPlace] = { MCPServers.find(at: ["m"], in: $0) }
  ) throws -> (old: ConfigDocument, new: ConfigDocument) {
    let old = try ConfigDocument(Array(text.utf8), format)
    let places = find(old.root)
    let new = try old.applying(
      places.flatMap { try WrapEdits(document: old, words: Self.words).edits($0) })
    for place in places {
      #expect(try place.command(in: new.root) == Self.words.all + place.command(in: old.root))
    }
    let commands = places.flatMap(\.paths).map { $0[...] }
    #expect(
      new.root.removing(commands).means(theSameAs: old.root.removing(commands)), "\(text)")
    let undone = try new.applying(
      find(new.root).flatMap { place -> [TextEdit] in
        guard case .split(let table, _, let arguments) = place.shape else { return [] }
        let hadList = old.root[table]?[arguments] != nil
        return try UnwrapEdits(document: new).edits(place, keepsEmptyList: hadList)
      })
    if undone.bytes != old.bytes {
      Issue.record("\(text)\n---\n\(String(decoding: undone.bytes, as: UTF8.self))")
    }
    return (old, new)
  }

  @Test("Undoing gives the bytes of any JSON file with comments again")
  func jsonc() throws {
    var config = RandomConfig(random: TestRandom())
    for _ in 0..<1500 { _ = try roundTrip(config.json(), .json) }
  }

  @Test("Undoing gives the bytes of any TOML file again")
  func toml() throws {
    var config = RandomConfig(random: TestRandom())
    for _ in 0..<1500 { _ = try roundTrip(config.toml(), .toml) }
  }

  @Test("Undoing gives the bytes of any YAML file again")
  func yaml() throws {
    var config = RandomConfig(random: TestRandom())
    for _ in 0..<1000 {
      try roundTrip(config.yaml(isList: false), .yaml)
      try roundTrip(config.yaml(isList: true), .yaml) { MCPServers.ofContinue($0) }
    }
  }

  @Test("A damaged YAML file is an error with a place in it, or is read")
  func damaged() throws {
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
        let (line, column) = error.place(in: bytes)
        #expect(line >= 1 && column >= 0 && (0...bytes.count).contains(error.offset))
      }
    }
  }

  @Test("Another reader of JSON finds only the commands changed")
  func otherReader() throws {
    var config = RandomConfig(random: TestRandom(), isStrict: true)
    for _ in 0..<500 {
      let (old, new) = try roundTrip(config.json(), .json)
      var expected = try #require(JSON(old.bytes))
      guard case .object(let servers)? = expected["m"] else { continue }
      let wrapped = servers.map { server in
        var value = server.value
        let words = Self.words.all + [value["command"]?.text ?? ""]
        value.set("command", .string(words[0]))
        let moved = words.dropFirst().map(JSON.string)
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
        MCPServers.find(at: ["m"], in: rewritten.root).flatMap { place in
          let hadList = old.root[["m", place.name]]?["args"] != nil
          return try UnwrapEdits(document: rewritten).edits(place, keepsEmptyList: hadList)
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

import TestSupport

/// Configurations with random values, blanks, comments and line ends.
struct RandomConfig {
  var random: TestRandom
  /// True if the text has nothing that only JSONC permits.
  var isStrict = false
  var lineEnd = "\n"

  mutating func pick<Element>(_ choices: [Element]) -> Element {
    choices[Int(random.next() % UInt64(choices.count))]
  }

  mutating func chance(_ percent: UInt64) -> Bool { random.next() % 100 < percent }

  mutating func count(_ limit: Int) -> Int { Int(random.next() % UInt64(limit + 1)) }

  /// A text with quotes that both formats read alike.
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
  mutating func yamlText() -> String {
    pick([
      "-y", "a b", "x#y", "\"a, b: {\"", "'it''s # no'", "é", "\"\"", "--", "wrap", "'3000'",
    ])
  }

  mutating func yamlFlowList() -> String {
    let comma = pick([", ", ",", " , "])
    return "[" + (0..<count(3)).map { _ in yamlText() }.joined(separator: comma)
      + pick(["]", " ]"])
  }

  mutating func yamlComment() -> String { chance(25) ? "  # c ] ' - x" : "" }

  /// The value of `args`, after its colon.
  mutating func yamlArguments(_ indent: String) -> String {
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

  /// - Parameter start: The text before the first key, instead of the indentation.
  mutating func yamlServer(_ indent: String, start: String) -> String {
    let command = pick(["npx", "\"npx\"", "'np x'", "./run me", "/usr/bin/é", "\"a\\x20b\""])
    var members = ["command:\(pick([" ", "  "]))\(command)\(yamlComment())\(lineEnd)"]
    if chance(70) { members.append("args:" + yamlArguments(indent)) }
    if chance(50) { members.append("env:\(lineEnd)\(indent)  A: 1\(lineEnd)") }
    if chance(50) { members.append("'other key': {a: [b, 'c']}\(lineEnd)") }
    members.shuffle(using: &random)
    return members.enumerated().map { ($0 == 0 ? start : indent) + $1 }.joined()
  }

  mutating func yaml(isList: Bool) -> String {
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

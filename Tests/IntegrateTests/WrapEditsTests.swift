import Testing

@testable import Integrate

/// Compares the bytes of a file before and after an edit.
@Suite("Wrapping a command in a file") struct WrapEditsTests {
  private static let wrapPrefix = WrapPrefix(program: "/usr/bin/dormouse")

  /// The location of the server `s` in the table `m`.
  private static let split = CommandLocation(
    name: "s", shape: .split(table: ["m", "s"], command: "command", arguments: "args"))
  private static let list = CommandLocation(name: "s", shape: .list(["argv"]))

  private func check(
    _ before: String, _ after: String, _ format: ConfigDocument.Format = .json,
    at location: CommandLocation = split, keepsEmptyList: Bool = true
  ) throws {
    let old = try ConfigDocument(Array(before.utf8), format)
    let new = try old.applying(
      WrapEdits(document: old, wrapPrefix: Self.wrapPrefix).edits(location))
    #expect(String(decoding: new.bytes, as: UTF8.self) == after)
    let command = try location.command(in: new.root)
    #expect(try command == Self.wrapPrefix.all + location.command(in: old.root))
    let undone = try new.applying(
      UnwrapEdits(document: new).edits(location, keepsEmptyList: keepsEmptyList))
    #expect(String(decoding: undone.bytes, as: UTF8.self) == before)
  }

  @Test func `Arguments on one line stay on it, with the blanks of the file`() throws {
    try check(
      #"{"m": {"s": {"command": "npx", "args": ["-y", "x"], "env": {}}}}"#,
      #"{"m": {"s": {"command": "/usr/bin/dormouse", "args": ["wrap", "--", "npx", "-y", "x"], "#
        + #""env": {}}}}"#
    )
    try check(
      #"{"m":{"s":{"args":["-y","x"],"command":"npx"}}}"#,
      #"{"m":{"s":{"args":["wrap","--","npx","-y","x"],"command":"/usr/bin/dormouse"}}}"#)
    try check(
      #"{"m":{"s":{"command":"n\u0070x","args":[ ]}}}"#,
      #"{"m":{"s":{"command":"/usr/bin/dormouse","args":["wrap", "--", "n\u0070x" ]}}}"#)
  }

  @Test func `Arguments that are on lines of their own get one more line`() throws {
    try check(
      "{ \"m\": { \"s\": {\r\n\t\"command\": \"npx\", // c\r\n\t\"args\": [\r\n\t\t\"-y\", // "
        + "d\r\n\t\t\"x\",\r\n\t],\r\n} } }",
      "{ \"m\": { \"s\": {\r\n\t\"command\": \"/usr/bin/dormouse\", // c\r\n\t\"args\": [\r\n\t\t"
        + "\"wrap\", \"--\", \"npx\",\r\n\t\t\"-y\", // d\r\n\t\t\"x\",\r\n\t],\r\n} } }"
    )
    try check(
      #"{"m": {"s": {"command": "a", "args": [ /* why */ "b" /* c */ ]}}}"#,
      #"{"m": {"s": {"command": "/usr/bin/dormouse", "args": [ /* why */ "wrap", "--", "a", "b" "#
        + #"/* c */ ]}}}"#
    )
  }

  @Test func `A server without arguments gets a list, which undoing removes again`() throws {
    try check(
      "{\"m\": {\n  \"s\": {\n    \"command\": \"x\"\n  }\n}}",
      "{\"m\": {\n  \"s\": {\n    \"command\": \"/usr/bin/dormouse\",\n    \"args\": [\"wrap\", "
        + "\"--\", \"x\"]\n  }\n}}",
      keepsEmptyList: false)
    try check(
      #"{"m":{"s":{"command":"x","env":{}}}}"#,
      #"{"m":{"s":{"command":"/usr/bin/dormouse","args":["wrap","--","x"],"env":{}}}}"#,
      keepsEmptyList: false)
    try check(
      #"{"m": {"s": {/* c */ "command": "x",}}}"#,
      #"{"m": {"s": {/* c */ "command": "/usr/bin/dormouse", "args": ["wrap", "--", "x"],}}}"#,
      keepsEmptyList: false)
  }

  @Test func `The new list is on a line of its own behind a comment, too`() throws {
    try check(
      "{\"m\": {\"s\": {\n\t// c\n\t\"command\": \"x\", // d\n}}}",
      "{\"m\": {\"s\": {\n\t// c\n\t\"command\": \"/usr/bin/dormouse\",\n\t\"args\": [\"wrap\", "
        + "\"--\", \"x\"], // d\n}}}",
      keepsEmptyList: false)
  }

  @Test func `Tables of TOML are edited where they are written`() throws {
    try check(
      "[m.s]\ncommand = 'npx'  # c\nargs = [\n  \"-y\", # d\n]\n",
      "[m.s]\ncommand = \"/usr/bin/dormouse\"  # c\nargs = [\n  \"wrap\", \"--\", 'npx',\n  "
        + "\"-y\", # d\n]\n",
      .toml)
    try check(
      "m = { s = { command = \"x\" } }",
      "m = { s = { command = \"/usr/bin/dormouse\", args = [\"wrap\", \"--\", \"x\"] } }",
      .toml, keepsEmptyList: false)
    try check(
      "\u{FEFF}m.s.command = \"x\"",
      "\u{FEFF}m.s.command = \"/usr/bin/dormouse\"\nm.s.args = [\"wrap\", \"--\", \"x\"]",
      .toml, keepsEmptyList: false)
    try check(
      "[m.s.env]\r\nA = 'b'\r\n[m.s]\r\n  command='x' # y\r\n  z=1\r\n",
      "[m.s.env]\r\nA = 'b'\r\n[m.s]\r\n  command=\"/usr/bin/dormouse\" # y\r\n  "
        + "args=[\"wrap\",\"--\",'x']\r\n  z=1\r\n",
      .toml, keepsEmptyList: false)
    try check(
      "[m.\"s\"]\ncommand = '''x'''\nargs = []\n",
      "[m.\"s\"]\ncommand = \"/usr/bin/dormouse\"\nargs = [\"wrap\", \"--\", '''x''']\n", .toml)
  }

  @Test func `Inline tables of TOML on several lines keep their lines`() throws {
    try check(
      "m.s = {\n  command = 'x', # c\n}\n",
      "m.s = {\n  command = \"/usr/bin/dormouse\",\n  args = [\"wrap\", \"--\", 'x'], # c\n}\n",
      .toml,
      keepsEmptyList: false)
    try check(
      "m.s = {\n  # c\n  args = ['y'], command = 'x'\n}\n",
      "m.s = {\n  # c\n  args = [\"wrap\", \"--\", 'x', 'y'], command = \"/usr/bin/dormouse\"\n}\n",
      .toml)
  }

  @Test("A list that has the program as its first element gets the arguments before it")
  func lists() throws {
    try check(
      "{\n \"argv\": [\n  \"/usr/bin/python3\",\n  \"-m\"\n ]\n}",
      "{\n \"argv\": [\n  \"/usr/bin/dormouse\", \"wrap\", \"--\",\n  \"/usr/bin/python3\",\n  "
        + "\"-m\"\n ]\n}",
      at: Self.list)
    try check(
      #"{"argv":["/bin/x","{connection_file}"]}"#,
      #"{"argv":["/usr/bin/dormouse","wrap","--","/bin/x","{connection_file}"]}"#, at: Self.list)
  }

  /// Unwraps a text after changes that a user or a host has made.
  private func undo(
    _ before: String, _ after: String, _ format: ConfigDocument.Format = .json,
    keepsEmptyList: Bool = false
  ) throws {
    let document = try ConfigDocument(Array(before.utf8), format)
    let edits = try UnwrapEdits(document: document).edits(
      Self.split, keepsEmptyList: keepsEmptyList)
    #expect(String(decoding: try document.applying(edits).bytes, as: UTF8.self) == after)
  }

  @Test("Undoing removes only inserted arguments, also from a file that was changed since")
  func changedSince() throws {
    try undo(
      """
      {"m": {"s": {"args": [
        "wrap",
        "--idle-after",
        "10m", // my note
        "--",
        "npx",
        "--new"
      ], "command": "/opt/dormouse"}}}
      """,
      """
      {"m": {"s": {"args": [
         // my note
        "--new"
      ], "command": "npx"}}}
      """)
    try undo(
      #"{"m": {"s": {"command": "dormouse", "args": ["wrap", "--", "x",], "new": 1}}}"#,
      #"{"m": {"s": {"command": "x", "new": 1}}}"#)
    try undo(
      #"{"m": {"s": {"command": "dormouse", "args": ["wrap", "--", "x" /* c */]}}}"#,
      #"{"m": {"s": {"command": "x", "args": [ /* c */]}}}"#)
    try undo(
      #"{"m": {"s": {"args": ["wrap", "--", "x"], "command": "dormouse"}}}"#,
      #"{"m": {"s": {"command": "x"}}}"#)
    try undo(
      "[m.s]\ncommand = \"dormouse\"\n\n# mine\nargs = [\"wrap\", \"--\", \"x\"] # too\n",
      "[m.s]\ncommand = \"x\"\n\n# mine\nargs = [] # too\n", .toml)
  }

  @Test("A wrapper without `--` isn't unwrapped, and a command without a wrapper isn't changed")
  func unclear() throws {
    let unclear = try ConfigDocument(
      Array(#"{"m": {"s": {"command": "dormouse", "args": ["wrap", "x"]}}}"#.utf8), .json)
    #expect(throws: Refusal.unclear) {
      try UnwrapEdits(document: unclear).edits(Self.split, keepsEmptyList: true)
    }
    let plain = try ConfigDocument(
      Array(#"{"m": {"s": {"command": "x", "args": ["wrap", "--", "y"]}}}"#.utf8), .json)
    #expect(try UnwrapEdits(document: plain).edits(Self.split, keepsEmptyList: true).isEmpty)
  }
}

import Glibc
import JSONLines
import Linux
import TestSupport
import Testing

/// `dormouse integrate` in a home directory of a test's own.
@Suite("dormouse integrate") struct IntegrateVerbTests {
  private struct Home {
    let scratch: Scratch
    var directory: String { "\(scratch.path)/project" }
    var state: String { "\(scratch.path)/state" }
    private var log: String { "\(scratch.path)/log" }

    init(_ files: [String: String]) throws {
      scratch = try Scratch(files.merging(["project/x": ""]) { $1 })
    }

    private var environment: [String: String] {
      [
        "HOME": scratch.path, "XDG_STATE_HOME": state, "XDG_RUNTIME_DIR": "\(scratch.path)/run",
        "DORMOUSE_CGROUP": "/proc/nowhere",
      ]
    }

    func run(_ arguments: [String], _ more: [String: String] = [:]) throws -> Outcome {
      var command = Command(arguments: arguments, directory: directory)
      command.environment.merge(environment.merging(more) { $1 }) { $1 }
      return try command.run(in: scratch, limit: .seconds(120))
    }

    func dormouse(_ arguments: String...) throws -> Outcome {
      try run([TestMachine.executable, "integrate"] + arguments)
    }

    func read(_ name: String) throws -> String { try readText("\(scratch.path)/\(name)") }

    /// Edits the file of a host so that its servers sleep soon.
    func wrap(_ arguments: String...) throws -> Outcome {
      try run(
        [TestMachine.executable, "integrate"] + arguments
          + ["--", "--idle-after", "500ms", "--hibernate-after", "100ms", "--log", log])
    }

    /// Starts the server as a host would, and has it sleep. It answers before and after that, and
    /// ends with 7 at the end of its input.
    func serve(_ file: String, _ keys: String...) throws {
      let fixture = TestMachine.fixture("server_of_config.py")
      let served = try run([TestMachine.python, fixture, "\(scratch.path)/\(file)", log] + keys)
      #expect(served.code == 0 && served.output == "before\nafter\n7\n", "\(served)")
    }
  }

  private static let python = TestMachine.python
  private static let server = TestMachine.fixture("stdio_server.py")
  private static let hasTOMLParser = {
    guard let scratch = try? Scratch() else { return false }
    let command = Command(arguments: [TestMachine.python, "-c", "import tomllib"])
    return (try? command.run(in: scratch).code) == 0
  }()

  @Test(
    "An MCP server of Claude Code answers, sleeps and answers again, started from the edited file")
  func claudeCode() throws {
    let text = #"""
      {
        "userID": "x",
        "mcpServers": {
          "files": {
            "type": "stdio",
            "command": "\#(Self.python)",
            "args": [
              "\#(Self.server)"
            ],
            "env": {}
          }
        }
      }

      """#
    let home = try Home([".claude.json": text])
    let outcome = try home.wrap("claude-code")
    #expect(outcome.code == 0 && outcome.error.isEmpty, "\(outcome)")
    #expect(outcome.output.contains("1 server wrapped"), "\(outcome)")
    #expect(try home.read(".claude.json").contains(#""command": "\#(TestMachine.executable)""#))
    try home.serve(".claude.json", "mcpServers", "files")
    #expect(try home.dormouse("claude-code", "--undo").code == 0)
    #expect(try home.read(".claude.json") == text)
  }

  @Test(.enabled(if: hasTOMLParser, "this Python has no parser of TOML"))
  func `Another parser of TOML starts the server of Codex from the edited file`() throws {
    let text = """
      model = 'x' # mine\r
      [mcp_servers."my server"] # é\r
      command = '\(Self.python)'\r
      \targs = [ # c\r
      \t  "\(Self.server)",\r
      \t]\r
      [mcp_servers.other]\r
      command = '\(Self.python)'\r

      """
    let home = try Home([".codex/config.toml": text])
    let outcome = try home.wrap("codex", "--server", "my server")
    #expect(outcome.code == 0, "\(outcome)")
    try home.serve(".codex/config.toml", "mcp_servers", "my server")
    #expect(try home.read(".codex/config.toml").hasSuffix(text.suffix(60)))
    #expect(try home.dormouse("codex", "--undo").code == 0)
    #expect(try home.read(".codex/config.toml") == text)
  }

  @Test func `A kernel of Jupyter starts from the edited file`() throws {
    let home = try Home([
      ".local/share/jupyter/kernels/py/kernel.json":
        #"{"argv": ["\#(Self.python)", "\#(Self.server)"], "display_name": "x"}"#
    ])
    let outcome = try home.wrap("jupyter", "--server", "py")
    #expect(outcome.code == 0, "\(outcome)")
    try home.serve(".local/share/jupyter/kernels/py/kernel.json")
  }

  @Test("--list, --dry-run and no host change nothing; a second run has nothing to do")
  func looks() throws {
    let text = #"{"mcpServers": {"s": {"command": "\#(Self.python)"}, "r": {"url": "http://x"}}}"#
    let home = try Home([".cursor/mcp.json": text])
    for arguments in [[], ["cursor", "--list"], ["all", "--dry-run"]] {
      let outcome = try home.run([TestMachine.executable, "integrate"] + arguments)
      #expect(outcome.code == 0, "\(outcome)")
      #expect(outcome.output.contains("a remote server has no process here"), "\(outcome)")
      #expect(try home.read(".cursor/mcp.json") == text)
      #expect(isAbsent(home.state))
    }
    let planned = try home.dormouse("cursor", "--dry-run").output
    #expect(planned.contains("\n+{\"mcpServers\": {\"s\": {\"command\": \"/"), "\(planned)")
    #expect(try home.dormouse("cursor").output.contains("1 server wrapped"))
    let wrapped = try home.read(".cursor/mcp.json")
    #expect(try home.dormouse("cursor").output.contains("Nothing to wrap."))
    #expect(try home.read(".cursor/mcp.json") == wrapped)
    #expect(try home.dormouse().output.contains("wrapped"))
  }

  @Test func `The path is the one that it was called by, also if that is a link`() throws {
    let home = try Home([
      ".cursor/mcp.json": #"{"mcpServers": {"s": {"command": "\#(Self.python)"}}}"#, "bin/x": "",
    ])
    let link = "\(home.scratch.path)/bin/dormouse"
    #expect(symlink(TestMachine.executable, link) == 0)
    let outcome = try home.run(
      ["env", "PATH=\(home.scratch.path)/bin:/usr/bin:/bin", "dormouse", "integrate", "cursor"])
    #expect(outcome.code == 0, "\(outcome)")
    #expect(try home.read(".cursor/mcp.json").contains(#""command": "\#(link)""#))
    #expect(try home.run(["../bin/dormouse", "integrate", "cursor", "--undo"]).code == 0)
    #expect(try home.run(["../bin/dormouse", "integrate", "cursor"]).code == 0)
    #expect(try home.read(".cursor/mcp.json").contains(#""command": "\#(link)""#))
  }

  @Test("What can't be done is one sentence on standard error, with the exit code for it")
  func failures() throws {
    let home = try Home([
      ".codex/config.toml": "[mcp_servers.a]\ncommand = \n",
      ".cursor/mcp.json": #"{"mcpServers": {"r": {"url": "http://x"}}}"#,
    ])
    let broken = try home.dormouse("codex")
    #expect(broken.code == 65 && broken.output.isEmpty, "\(broken)")
    #expect(broken.error.hasSuffix("config.toml:2:11: a value is expected here\n"), "\(broken)")
    let all = try home.dormouse("all", "--undo")
    #expect(all.code == 65 && all.error.contains("config.toml:2:11"), "\(all)")
    for (arguments, code, text) in [
      (["zed"], 1, "no server is configured in the files of Zed; looked at ~/.config/zed"),
      (["cursor", "--server", "r"], 1, "`r` isn't changed: a remote server has no process here"),
      (["cursor", "--server", "x"], 1, "there is no server `x` in the files of Cursor"),
      (["cursor", "--", "--idle-after", "x"], 64, "--idle-after must be a duration"),
      (["cursor", "--", "--no-such"], 64, "`wrap` has no option `--no-such`"),
      (["cursor", "--", "clangd"], 64, "`clangd` is none"),
      (["nobodys-editor"], 64, "claude-code"),
      (["--undo"], 64, "Name a host"),
      (["cursor", "--list", "--undo"], 64, "--list changes nothing"),
      (["cursor", "--undo", "--", "--may-terminate"], 64, "Options of `wrap`"),
    ] {
      let outcome = try home.run([TestMachine.executable, "integrate"] + arguments)
      #expect(
        outcome.code == Int32(code) && outcome.error.contains(text), "\(arguments): \(outcome)")
    }
  }

  @Test func `The JSON is what its schema says, of lists, plans, changes and problems`() throws {
    let home = try Home([
      ".cursor/mcp.json":
        #"{"mcpServers": {"s": {"command": "\#(Self.python)"}, "r": {"url": "http://x"}}}"#,
      ".config/zed/settings.json": "{",
      ".claude.json": #"{"projects": {"/a": {"mcpServers": {"p": {"command": "/nowhere/x"}}}}}"#,
    ])
    let schema = try DocumentSchema("integrate")
    for (arguments, exit, code) in [
      (["--list"], 0, "listed"), (["all", "--dry-run"], 65, "unparsable"),
      (["cursor", "--dry-run"], 0, "planned"), (["cursor"], 0, "done"),
      (["cursor"], 0, "nothing_to_do"), (["cursor", "--undo"], 0, "done"),
      (["neovim"], 0, "nothing_to_do"),
    ] {
      let outcome = try home.run([TestMachine.executable, "integrate", "--json"] + arguments)
      #expect(outcome.code == Int32(exit), "\(outcome)")
      let document = try #require(JSON(Array(outcome.output.utf8).dropLast()), "\(outcome)")
      #expect(try schema.problems(of: document) == [], "\(arguments)")
      #expect(document["code"]?.text == code, "\(arguments): \(outcome)")
    }
  }

  @Test("The usage has the options of `wrap` last")
  func usage() throws {
    let outcome = try Home([:]).dormouse("--help")
    #expect(
      outcome.output.hasPrefix(
        "USAGE: dormouse integrate [<options>] [<host>] [-- <wrap options>]\n"), "\(outcome)")
  }

  @Test func `No line is wider than a terminal of 80 columns, except for a long path`() throws {
    let args = (1...40).map { "\"word\($0)\"" }.joined(separator: ", ")
    let home = try Home([
      ".cursor/mcp.json": #"""
      {"mcpServers": {
        "a-server-with-a-name-that-is-long": {"command": "\#(Self.python)", "args": [\#(args)]},
        "container": {"command": "docker", "args": ["run"]}}}
      """#
    ])
    for arguments in [["cursor", "--list"], ["cursor"], ["cursor", "--undo"]] {
      let outcome = try home.run(
        [TestMachine.python, TestMachine.fixture("pty_run.py"), "80", "", "", "--"]
          + [TestMachine.executable, "integrate"] + arguments, ["NO_COLOR": "1"])
      let long = outcome.output.split(separator: "\n").filter { $0.count > 80 }
      #expect(outcome.code == 0 && long.isEmpty, "\(outcome)")
    }
  }
}

import Testing

@testable import Integrate

@Suite("Where further agents and editors have their servers") struct AgentHostTests {
  @Test("Gemini CLI: the user's and the project's settings, without the excluded servers")
  func gemini() throws {
    let home = try IntegrateHome([
      ".gemini/settings.json": #"""
      {"mcpServers": {"a": {"command": "sleep"}, "b": {"command": "sleep"},
        "web": {"httpUrl": "https://example.org"}}, "mcp": {"excluded": ["b"]}}
      """#,
      "project/.gemini/settings.json": #"{"mcpServers": {"p": {"command": "sleep"}}}"#,
    ])
    #expect(
      home.states(.geminiCLI) == [
        "a": "not_wrapped", "b": "disabled", "web": "remote", "p": "not_wrapped",
      ])
  }

  @Test func `OpenCode: servers of both versions, and language servers with a command`() throws {
    let home = try IntegrateHome([
      ".config/opencode/opencode.jsonc": #"""
      {"mcp": { // old
        "one": {"type": "local", "command": ["sleep", "1"], "enabled": true},
        "web": {"type": "remote", "url": "https://example.org"},
        "off": {"type": "local", "command": ["sleep"], "enabled": false}},
       "lsp": {"mine": {"command": ["sleep", "2"], "extensions": [".x"]},
               "gopls": {"disabled": true}}}
      """#,
      "project/opencode.json":
        #"{"mcp": {"servers": {"two": {"type": "local", "command": ["sleep"]}}}, "lsp": true}"#,
    ])
    #expect(
      home.states(.opencode) == [
        "one": "not_wrapped", "web": "remote", "off": "disabled", "mine": "not_wrapped",
        "two": "not_wrapped",
      ])
    let before = try home.read(".config/opencode/opencode.jsonc")
    home.change(.opencode)
    #expect(
      try home.read(".config/opencode/opencode.jsonc").contains(
        #""command": ["/usr/bin/dormouse", "wrap", "--", "sleep", "1"]"#))
    home.change(.opencode, .unwrap)
    #expect(try home.read(".config/opencode/opencode.jsonc") == before)
  }

  @Test func `Windsurf, LM Studio and Cline have one file, Cline one in each editor`() throws {
    let text = #"{"mcpServers": {"s": {"command": "sleep"}, "w": {"serverUrl": "https://x.org"}}}"#
    let cline = "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
    let home = try IntegrateHome([
      ".codeium/windsurf/mcp_config.json": text, ".lmstudio/mcp.json": text,
      ".config/Code/User/\(cline)": text, ".config/VSCodium/User/\(cline)": text,
      ".cline/data/settings/cline_mcp_settings.json": text,
    ])
    for host in [IntegratedHost.windsurf, .lmStudio, .cline] {
      #expect(home.states(host) == ["s": "not_wrapped", "w": "remote"])
    }
    #expect(home.inspect(.cline).count == 3)
  }

  private static let config = """
    name: mine # a comment
    mcpServers:
      - name: SQLite MCP
        command: sleep
        args:
          - "-y"
          - db # the file
      - command: sleep   # no arguments
        name: bare
      - name: bare
        command: sleep
      - name: web
        type: sse
        url: https://example.org

    """

  @Test func `Continue: a list of servers with names, and the files of mcpServers`() throws {
    let home = try IntegrateHome([
      ".continue/config.yaml": Self.config,
      "project/.continue/mcpServers/p.yaml": "mcpServers:\n- {name: flow, command: sleep}\n",
      "project/.continue/mcpServers/mcp.json": #"{"mcpServers": {"j": {"command": "sleep"}}}"#,
    ])
    #expect(
      home.states(.continueDev) == [
        "SQLite MCP": "not_wrapped", "bare": "not_wrapped", "web": "remote", "flow": "not_wrapped",
        "j": "not_wrapped",
      ])
    home.change(.continueDev)
    #expect(
      try home.read(".continue/config.yaml") == """
        name: mine # a comment
        mcpServers:
          - name: SQLite MCP
            command: "/usr/bin/dormouse"
            args:
              - "wrap"
              - "--"
              - sleep
              - "-y"
              - db # the file
          - command: "/usr/bin/dormouse"   # no arguments
            args:
              - "wrap"
              - "--"
              - sleep
            name: bare
          - name: bare
            command: sleep
          - name: web
            type: sse
            url: https://example.org

        """)
    #expect(
      try home.read("project/.continue/mcpServers/p.yaml")
        == "mcpServers:\n- {name: flow, command: \"/usr/bin/dormouse\", args: [\"wrap\", \"--\", "
        + "sleep]}\n"
    )
    home.change(.continueDev, .unwrap)
    #expect(try home.read(".continue/config.yaml") == Self.config)
  }

  @Test("Goose: extensions with a command, which Goose may write again in its own way")
  func goose() throws {
    let home = try IntegrateHome([
      ".config/goose/config.yaml": """
      GOOSE_MODEL: "x"
      extensions:
        developer:
          bundled: true
          enabled: true
          type: builtin
        docs:
          cmd: sleep
          args: []
          enabled: true
          type: stdio
        off:
          cmd: sleep
          enabled: false
        web: {type: streamable_http, uri: "https://example.org"}

      """
    ])
    #expect(
      home.states(.goose) == ["docs": "not_wrapped", "off": "disabled", "web": "remote"])
    let before = try home.read(".config/goose/config.yaml")
    home.change(.goose)
    #expect(
      try home.read(".config/goose/config.yaml").contains(
        "cmd: \"/usr/bin/dormouse\"\n    args: [\"wrap\", \"--\", sleep]\n"))
    home.change(.goose, .unwrap)
    #expect(try home.read(".config/goose/config.yaml") == before)
  }

  @Test func `Claude Code's plugins and Zed's agents have commands, too`() throws {
    let home = try IntegrateHome([
      ".claude/plugins/cache/market/go/1.0/.lsp.json":
        #"{"go": {"command": "sleep", "args": ["serve"], "extensionToLanguage": {".go": "go"}}}"#,
      "project/.lsp.json": #"{"own": {"command": "sleep"}, "$schema": "x"}"#,
      ".config/zed/settings.json":
        #"{"agent_servers": {"Custom": {"command": "sleep", "args": ["--acp"]}, "gemini": {"env": "#
        + #"{}}}}"#,
    ])
    #expect(home.states(.claudeCode) == ["go": "not_wrapped", "own": "not_wrapped"])
    #expect(home.states(.zed) == ["Custom": "not_wrapped"])
  }
}

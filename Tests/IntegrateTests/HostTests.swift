import Testing

@testable import Integrate

@Suite("Where hosts have their servers") struct HostTests {
  @Test("Claude Code: the user's servers and those of each project, with its disabled ones")
  func claudeCode() throws {
    var home = try IntegrateHome([
      ".claude.json": #"""
      {"mcpServers": {"user": {"type": "stdio", "command": "sleep"}},
       "projects": {"/src/a": {"mcpServers": {"a": {"command": "sleep"}, "b": {"command": "sleep"}},
         "disabledMcpServers": ["b"]}, "/src/c": {}}}
      """#,
      "project/.mcp.json": #"{"mcpServers": {"shared": {"command": "sleep"}}}"#,
      "other/.claude.json": #"{"mcpServers": {"moved": {"command": "sleep"}}}"#,
    ])
    #expect(
      home.states(.claudeCode) == [
        "user": "not_wrapped", "a": "not_wrapped", "b": "disabled", "shared": "not_wrapped",
      ])
    #expect(home.look(.claudeCode).map(\.isOfProject) == [false, true])
    home.change(.claudeCode)
    #expect(try home.read(".claude.json").contains(#""a": {"command": "/usr/bin/dormouse""#))
    home.environment["CLAUDE_CONFIG_DIR"] = "\(home.scratch.path)/other"
    #expect(home.states(.claudeCode).keys.contains("moved"))
  }

  @Test("Codex: tables of its config.toml, also in the directory of CODEX_HOME")
  func codex() throws {
    var home = try IntegrateHome([
      ".codex/config.toml": """
      model = "x"
      [mcp_servers.docs]
      command = "sleep"
      args = ["1"]
      [mcp_servers.off]
      command = "sleep"
      enabled = false
      [mcp_servers.web]
      url = "https://example.org"

      """,
      "other/config.toml": "mcp_servers = { s = { command = 'sleep' } }\n",
    ])
    #expect(
      home.states(.codex) == ["docs": "not_wrapped", "off": "disabled", "web": "remote"])
    home.environment["CODEX_HOME"] = "\(home.scratch.path)/other"
    home.change(.codex)
    #expect(
      try home.read("other/config.toml")
        == "mcp_servers = { s = { command = \"/usr/bin/dormouse\", args = [\"wrap\", \"--\", 'sleep'] } }\n"
    )
  }

  @Test("VS Code: MCP servers of mcp.json and of settings, and servers that settings name")
  func vscode() throws {
    let home = try IntegrateHome([
      ".config/Code/User/mcp.json": "{ // mine\n\"servers\": {\"m\": {\"command\": \"sleep\",}}}",
      ".config/VSCodium/User/settings.json": #"""
      {"clangd.path": "sleep", "rust-analyzer.server.path": "/usr/bin/env",
       "terraform.languageServer.path": "sleep", "swift.sourcekit-lsp.serverPath": "",
       "mcp": {"servers": {"old": {"command": "sleep"}}}}
      """#,
    ])
    #expect(
      home.states(.vscode) == [
        "m": "not_wrapped", "clangd": "not_wrapped", "old": "not_wrapped",
        "rust-analyzer": "no_setting_for_arguments", "terraform-ls": "default_arguments",
      ])
    home.change(.vscode)
    #expect(
      try home.read(".config/VSCodium/User/settings.json").hasPrefix(
        #"{"clangd.path": "/usr/bin/dormouse", "clangd.arguments": ["wrap", "--", "sleep"], "rust"#)
    )
  }

  @Test("Zed: context servers of both forms, and binaries of language servers")
  func zed() throws {
    var home = try IntegrateHome([
      "xdg/zed/settings.json": #"""
      // Zed
      {"context_servers": {
        "new": {"source": "custom", "command": "sleep", "args": ["1"]},
        "old": {"command": {"path": "sleep", "args": ["2"], "env": {}}},
        "off": {"command": "sleep", "enabled": false},
        "extension": {"source": "extension", "settings": {}},},
       "lsp": {"clangd": {"binary": {"path": "sleep", "arguments": ["3"]}}, "gopls": {}}}
      """#
    ])
    home.environment["XDG_CONFIG_HOME"] = "\(home.scratch.path)/xdg"
    #expect(
      home.states(.zed) == [
        "new": "not_wrapped", "old": "not_wrapped", "off": "disabled",
        "extension": "no_command", "clangd": "not_wrapped",
      ])
    home.change(.zed)
    let text = try home.read("xdg/zed/settings.json")
    #expect(
      text.contains(
        #""old": {"command": {"path": "/usr/bin/dormouse", "args": ["wrap", "--", "sleep", "2"], "env": {}}}"#
      ))
    #expect(
      text.contains(
        #"{"path": "/usr/bin/dormouse", "arguments": ["wrap", "--", "sleep", "3"]}"#))
  }

  @Test("Helix: servers with a command, unless Helix would add arguments of its own")
  func helix() throws {
    let home = try IntegrateHome([
      ".config/helix/languages.toml": """
      [language-server.clangd]
      command = "sleep"
      args = ["1"]
      [language-server.pylsp]
      command = "sleep"
      [language-server.gopls]
      config = { x = 1 }
      [[language]]
      name = "c"

      """
    ])
    #expect(
      home.states(.helix) == [
        "clangd": "not_wrapped", "pylsp": "default_arguments", "gopls": "no_command",
      ])
  }

  @Test("Jupyter: kernels of the user, of JUPYTER_PATH and of the active environment")
  func jupyter() throws {
    var home = try IntegrateHome([
      ".local/share/jupyter/kernels/py/kernel.json":
        #"{"argv": ["/usr/bin/env", "-f", "{connection_file}"], "display_name": "x"}"#,
      ".local/share/jupyter/kernels/bare/kernel.json": #"{"argv": ["python3", "-m", "x"]}"#,
      "venv/share/jupyter/kernels/v/kernel.json": #"{"argv": ["/usr/bin/env"]}"#,
      "path/kernels/p/kernel.json":
        #"{"argv": ["/usr/bin/env"], "metadata": {"kernel_provisioner": {"provisioner_name": "x"}}}"#,
    ])
    home.environment["VIRTUAL_ENV"] = "\(home.scratch.path)/venv"
    home.environment["JUPYTER_PATH"] = "\(home.scratch.path)/path"
    let states = home.states(.jupyter)
    #expect(states["py"] == "not_wrapped" && states["v"] == "not_wrapped")
    #expect(states["bare"] == "python_of_jupyter" && states["p"] == "other_provisioner")
    let files = home.look(.jupyter).filter { $0.path.hasPrefix(home.scratch.path) }
    #expect(files.count == 4)
    home.environment["JUPYTER_DATA_DIR"] = "\(home.scratch.path)/nowhere"
    #expect(home.states(.jupyter)["py"] == nil)
  }

  @Test("Claude Desktop, Cursor and projects have their own files")
  func others() throws {
    let text = #"{"mcpServers": {"s": {"command": "sleep"}}}"#
    let home = try IntegrateHome([
      ".config/Claude/claude_desktop_config.json": text, "project/.cursor/mcp.json": text,
      "project/.vscode/mcp.json": #"{"servers": {"v": {"command": "sleep"}}}"#,
      "project/.codex/config.toml": "[mcp_servers.c]\ncommand = 'sleep'\n",
    ])
    #expect(home.states(.claudeDesktop) == ["s": "not_wrapped"])
    #expect(home.look(.cursor).map(\.isOfProject) == [true])
    #expect(home.states(.vscode) == ["v": "not_wrapped"])
    #expect(home.states(.codex) == ["c": "not_wrapped"])
  }

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

  @Test("OpenCode: servers of both versions, and language servers with a command")
  func opencode() throws {
    let home = try IntegrateHome([
      ".config/opencode/opencode.jsonc": #"""
      {"mcp": { // old
        "one": {"type": "local", "command": ["sleep", "1"], "enabled": true},
        "web": {"type": "remote", "url": "https://example.org"},
        "off": {"type": "local", "command": ["sleep"], "enabled": false}},
       "lsp": {"mine": {"command": ["sleep", "2"], "extensions": [".x"]}, "gopls": {"disabled": true}}}
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

  @Test("Windsurf, LM Studio and Cline have one file, Cline one in each editor")
  func otherFiles() throws {
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
    #expect(home.look(.cline).count == 3)
  }

  @Test("Continue: a list of servers with names, and the files of mcpServers")
  func continueDev() throws {
    let config = """
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
    let home = try IntegrateHome([
      ".continue/config.yaml": config,
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
        == "mcpServers:\n- {name: flow, command: \"/usr/bin/dormouse\", args: [\"wrap\", \"--\", sleep]}\n"
    )
    home.change(.continueDev, .unwrap)
    #expect(try home.read(".continue/config.yaml") == config)
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

  @Test("Claude Code's plugins and Zed's agents have commands, too")
  func pluginsAndAgents() throws {
    let home = try IntegrateHome([
      ".claude/plugins/cache/market/go/1.0/.lsp.json":
        #"{"go": {"command": "sleep", "args": ["serve"], "extensionToLanguage": {".go": "go"}}}"#,
      "project/.lsp.json": #"{"own": {"command": "sleep"}, "$schema": "x"}"#,
      ".config/zed/settings.json":
        #"{"agent_servers": {"Custom": {"command": "sleep", "args": ["--acp"]}, "gemini": {"env": {}}}}"#,
    ])
    #expect(home.states(.claudeCode) == ["go": "not_wrapped", "own": "not_wrapped"])
    #expect(home.states(.zed) == ["Custom": "not_wrapped"])
  }

  @Test("Neovim and Emacs have a snippet with the words, and no files")
  func snippets() throws {
    let home = try IntegrateHome([:])
    #expect(home.look(.neovim).isEmpty && home.look(.emacs).isEmpty)
    let words = WrapWords(program: "/usr/bin/dormouse", options: ["--idle-after", "1m"])
    let lua = try #require(IntegratedHost.neovim.snippet(words))
    #expect(
      lua.contains(
        #"{ "/usr/bin/dormouse", "wrap", "--idle-after", "1m", "--", "clangd" }"#))
    let elisp = try #require(IntegratedHost.emacs.snippet(words))
    #expect(elisp.count { $0 == "(" } == elisp.count { $0 == ")" })
    #expect(IntegratedHost.codex.snippet(words) == nil)
  }
}

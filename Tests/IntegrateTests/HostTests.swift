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
    #expect(home.inspect(.claudeCode).map(\.isOfProject) == [false, true])
    home.change(.claudeCode)
    #expect(try home.read(".claude.json").contains(#""a": {"command": "/usr/bin/dormouse""#))
    home.environment["CLAUDE_CONFIG_DIR"] = "\(home.scratch.path)/other"
    #expect(home.states(.claudeCode).keys.contains("moved"))
  }

  @Test func `Codex: tables of its config.toml, also in the directory of CODEX_HOME`() throws {
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
        == "mcp_servers = { s = { command = \"/usr/bin/dormouse\", args = [\"wrap\", \"--\", "
        + "'sleep'] } }\n"
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

  @Test func `Zed: context servers of both forms, and binaries of language servers`() throws {
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
        #""old": {"command": {"path": "/usr/bin/dormouse", "args": ["wrap", "--", "sleep", "2"], "#
          + #""env": {}}}"#
      ))
    #expect(
      text.contains(
        #"{"path": "/usr/bin/dormouse", "arguments": ["wrap", "--", "sleep", "3"]}"#))
  }

  @Test func `Helix: servers with a command, unless Helix would add arguments of its own`() throws {
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
        #"{"argv": ["/usr/bin/env"], "metadata": {"kernel_provisioner": {"provisioner_name": "#
        + #""x"}}}"#,
    ])
    home.environment["VIRTUAL_ENV"] = "\(home.scratch.path)/venv"
    home.environment["JUPYTER_PATH"] = "\(home.scratch.path)/path"
    let states = home.states(.jupyter)
    #expect(states["py"] == "not_wrapped" && states["v"] == "not_wrapped")
    #expect(states["bare"] == "python_of_jupyter" && states["p"] == "other_provisioner")
    let files = home.inspect(.jupyter).filter { $0.path.hasPrefix(home.scratch.path) }
    #expect(files.count == 4)
    home.environment["JUPYTER_DATA_DIR"] = "\(home.scratch.path)/nowhere"
    #expect(home.states(.jupyter)["py"] == nil)
  }

  @Test func `Claude Desktop, Cursor and projects have their own files`() throws {
    let text = #"{"mcpServers": {"s": {"command": "sleep"}}}"#
    let home = try IntegrateHome([
      ".config/Claude/claude_desktop_config.json": text, "project/.cursor/mcp.json": text,
      "project/.vscode/mcp.json": #"{"servers": {"v": {"command": "sleep"}}}"#,
      "project/.codex/config.toml": "[mcp_servers.c]\ncommand = 'sleep'\n",
    ])
    #expect(home.states(.claudeDesktop) == ["s": "not_wrapped"])
    #expect(home.inspect(.cursor).map(\.isOfProject) == [true])
    #expect(home.states(.vscode) == ["v": "not_wrapped"])
    #expect(home.states(.codex) == ["c": "not_wrapped"])
  }

  @Test func `Neovim and Emacs have a snippet with the wrapped command, and no files`() throws {
    let home = try IntegrateHome([:])
    #expect(home.inspect(.neovim).isEmpty && home.inspect(.emacs).isEmpty)
    let wrapPrefix = WrapPrefix(program: "/usr/bin/dormouse", options: ["--idle-after", "1m"])
    let lua = try #require(IntegratedHost.neovim.snippet(wrapPrefix))
    #expect(
      lua.contains(
        #"{ "/usr/bin/dormouse", "wrap", "--idle-after", "1m", "--", "clangd" }"#))
    let elisp = try #require(IntegratedHost.emacs.snippet(wrapPrefix))
    #expect(elisp.count { $0 == "(" } == elisp.count { $0 == ")" })
    #expect(IntegratedHost.codex.snippet(wrapPrefix) == nil)
  }
}

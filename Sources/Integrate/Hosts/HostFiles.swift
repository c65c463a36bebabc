import Linux

/// The files that a host may have. The lists include files that don't exist.
extension IntegratedHost {
  func files(_ context: HostContext) -> [HostFile] {
    switch self {
    case .claudeCode: claudeCode(context)
    case .claudeDesktop:
      [servers("\(context.configuration)/Claude/claude_desktop_config.json", ["mcpServers"])]
    case .codex: codex(context)
    case .cursor: cursor(context)
    case .vscode: vscode(context)
    case .windsurf:
      [servers("\(context.home)/.codeium/windsurf/mcp_config.json", ["mcpServers"])]
    case .cline: cline(context)
    case .continueDev: continueDev(context)
    case .geminiCLI: gemini(context)
    case .opencode: opencode(context)
    case .goose:
      [
        HostFile(
          host: self, path: "\(context.configuration)/goose/config.yaml", format: .yaml
        ) { MCPServers.ofGoose($0) }
      ]
    case .lmStudio: [servers("\(context.home)/.lmstudio/mcp.json", ["mcpServers"])]
    case .zed: zed(context)
    case .helix: helix(context)
    case .jupyter: jupyter(context)
    case .neovim, .emacs: []
    }
  }

  private func servers(
    _ path: String, _ keys: [String], isOfProject: Bool = false
  ) -> HostFile {
    HostFile(host: self, path: path, isOfProject: isOfProject) {
      MCPServers.find(at: keys, in: $0)
    }
  }

  private func claudeCode(_ context: HostContext) -> [HostFile] {
    let directory = context.variable("CLAUDE_CONFIG_DIR") ?? context.home
    let files = [
      HostFile(host: self, path: "\(directory)/.claude.json") { MCPServers.ofClaudeCode($0) },
      servers("\(context.directory)/.mcp.json", ["mcpServers"], isOfProject: true),
    ]
    // Installed plugins have a directory for each marketplace, plugin and version. The project may
    // be a plugin that is being developed.
    let cache =
      (context.variable("CLAUDE_CONFIG_DIR") ?? "\(context.home)/.claude") + "/plugins/cache"
    let plugins = (0..<3).reduce([cache]) { paths, _ in paths.flatMap { Self.entries($0) } }
    return files
      + (plugins.map { ($0, false) } + [(context.directory, true)]).map { path, isProject in
        HostFile(host: self, path: "\(path)/.lsp.json", isOfProject: isProject) {
          LanguageServers.ofClaudePlugin($0)
        }
      }
  }

  private func gemini(_ context: HostContext) -> [HostFile] {
    [(context.home, false), (context.directory, true)].map { directory, isProject in
      HostFile(
        host: self, path: "\(directory)/.gemini/settings.json", isOfProject: isProject
      ) { MCPServers.ofGemini($0) }
    }
  }

  private func opencode(_ context: HostContext) -> [HostFile] {
    let user = "\(context.configuration)/opencode"
    let files =
      ["config.json", "opencode.json", "opencode.jsonc"].map { ("\(user)/\($0)", false) }
      + [context.variable("OPENCODE_CONFIG")].compactMap { $0 }.map { ($0, false) }
      + ["opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"]
      .map { ("\(context.directory)/\($0)", true) }
    return files.map { path, isProject in
      HostFile(host: self, path: path, isOfProject: isProject) { MCPServers.ofOpenCode($0) }
    }
  }

  /// The files of the extension, one for each editor that may have it, and that of the command
  /// line.
  private func cline(_ context: HostContext) -> [HostFile] {
    let editors = ["Code", "Code - Insiders", "Code - OSS", "VSCodium", "Cursor", "Windsurf"]
    let users =
      editors.map { "\(context.configuration)/\($0)/User" }
      + ["\(context.home)/.vscode-server/data/User"]
    let extensions = users.map { "\($0)/globalStorage/saoudrizwan.claude-dev/settings" }
    let directories = extensions + ["\(context.home)/.cline/data/settings"]
    let named = [context.variable("CLINE_MCP_SETTINGS_PATH")].compactMap { $0 }
    return (named + directories.map { "\($0)/cline_mcp_settings.json" }).map {
      servers($0, ["mcpServers"])
    }
  }

  private func continueDev(_ context: HostContext) -> [HostFile] {
    let main = HostFile(
      host: self, path: "\(context.home)/.continue/config.yaml", format: .yaml
    ) { MCPServers.ofContinue($0) }
    let directories = [(context.home, false), (context.directory, true)]
    return [main]
      + directories.flatMap { directory, isProject in
        Self.entries("\(directory)/.continue/mcpServers").compactMap { path -> HostFile? in
          if path.hasSuffix(".json") {
            return servers(path, ["mcpServers"], isOfProject: isProject)
          }
          guard path.hasSuffix(".yaml") || path.hasSuffix(".yml") else { return nil }
          return HostFile(host: self, path: path, format: .yaml, isOfProject: isProject) {
            MCPServers.ofContinue($0)
          }
        }
      }
  }

  private func codex(_ context: HostContext) -> [HostFile] {
    let directory = context.variable("CODEX_HOME") ?? "\(context.home)/.codex"
    return [(directory, false), ("\(context.directory)/.codex", true)].map { directory, isProject in
      HostFile(
        host: self, path: "\(directory)/config.toml", format: .toml, isOfProject: isProject
      ) { MCPServers.find(at: ["mcp_servers"], in: $0) }
    }
  }

  private func cursor(_ context: HostContext) -> [HostFile] {
    [
      servers("\(context.home)/.cursor/mcp.json", ["mcpServers"]),
      servers("\(context.directory)/.cursor/mcp.json", ["mcpServers"], isOfProject: true),
    ]
  }

  private func vscode(_ context: HostContext) -> [HostFile] {
    let editions = ["Code", "Code - Insiders", "Code - OSS", "VSCodium"]
    var directories: [(path: String, isOfProject: Bool)] = []
    for edition in editions {
      let user = "\(context.configuration)/\(edition)/User"
      directories.append((user, false))
      directories += Self.entries("\(user)/profiles").map { ($0, false) }
    }
    directories += ["User", "Machine"].map { ("\(context.home)/.vscode-server/data/\($0)", false) }
    directories.append(("\(context.directory)/.vscode", true))
    return directories.flatMap { directory in
      [
        servers("\(directory.path)/mcp.json", ["servers"], isOfProject: directory.isOfProject),
        HostFile(
          host: self, path: "\(directory.path)/settings.json", isOfProject: directory.isOfProject
        ) { MCPServers.find(at: ["mcp", "servers"], in: $0) + LanguageServers.ofVSCode($0) },
      ]
    }
  }

  private func zed(_ context: HostContext) -> [HostFile] {
    [("\(context.configuration)/zed", false), ("\(context.directory)/.zed", true)].map {
      HostFile(host: self, path: "\($0)/settings.json", isOfProject: $1) {
        MCPServers.find(at: ["context_servers"], in: $0) + LanguageServers.ofZed($0)
          + LanguageServers.agentsOfZed($0)
      }
    }
  }

  private func helix(_ context: HostContext) -> [HostFile] {
    [("\(context.configuration)/helix", false), ("\(context.directory)/.helix", true)].map {
      HostFile(host: self, path: "\($0)/languages.toml", format: .toml, isOfProject: $1) {
        LanguageServers.ofHelix($0)
      }
    }
  }

  private func jupyter(_ context: HostContext) -> [HostFile] {
    let data =
      context.variable("JUPYTER_DATA_DIR")
      ?? (context.variable("XDG_DATA_HOME") ?? "\(context.home)/.local/share") + "/jupyter"
    let named = (context.environment["JUPYTER_PATH"] ?? "").split(separator: ":").map(String.init)
    let prefixes = ["VIRTUAL_ENV", "CONDA_PREFIX"].compactMap(context.variable)
    let directories =
      named.filter { $0.hasPrefix("/") } + [data] + prefixes.map { "\($0)/share/jupyter" }
      + ["/usr/local/share/jupyter", "/usr/share/jupyter"]
    return directories.flatMap { Self.entries("\($0)/kernels") }.map { directory in
      HostFile(host: self, path: "\(directory)/kernel.json") {
        JupyterKernels.find(baseName(directory), in: $0)
      }
    }
  }

  /// The paths in a directory; none if there is no such directory.
  private static func entries(_ path: String) -> [String] {
    // If the directory can't be listed, there are no files in it that could be changed.
    ((try? listDirectory(path)) ?? []).sorted().map { "\(path)/\($0)" }
  }
}

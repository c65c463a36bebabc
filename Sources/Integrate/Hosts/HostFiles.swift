import Linux

/// The files that a host may have. The lists include files that don't exist.
extension IntegratedHost {
  func files(_ places: HostPlaces) -> [HostFile] {
    switch self {
    case .claudeCode: claudeCode(places)
    case .claudeDesktop:
      [servers("\(places.configuration)/Claude/claude_desktop_config.json", ["mcpServers"])]
    case .codex: codex(places)
    case .cursor: cursor(places)
    case .vscode: vscode(places)
    case .windsurf:
      [servers("\(places.home)/.codeium/windsurf/mcp_config.json", ["mcpServers"])]
    case .cline: cline(places)
    case .continueDev: continueDev(places)
    case .geminiCLI: gemini(places)
    case .opencode: opencode(places)
    case .goose:
      [
        HostFile(
          host: self, path: "\(places.configuration)/goose/config.yaml", format: .yaml
        ) { MCPServers.ofGoose($0) }
      ]
    case .lmStudio: [servers("\(places.home)/.lmstudio/mcp.json", ["mcpServers"])]
    case .zed: zed(places)
    case .helix: helix(places)
    case .jupyter: jupyter(places)
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

  private func claudeCode(_ places: HostPlaces) -> [HostFile] {
    let directory = places.variable("CLAUDE_CONFIG_DIR") ?? places.home
    let files = [
      HostFile(host: self, path: "\(directory)/.claude.json") { MCPServers.ofClaudeCode($0) },
      servers("\(places.directory)/.mcp.json", ["mcpServers"], isOfProject: true),
    ]
    // Installed plugins have a directory for each marketplace, plugin and version. The project may
    // be a plugin that is being developed.
    let cache =
      (places.variable("CLAUDE_CONFIG_DIR") ?? "\(places.home)/.claude") + "/plugins/cache"
    let plugins = (0..<3).reduce([cache]) { paths, _ in paths.flatMap { Self.entries($0) } }
    return files
      + (plugins.map { ($0, false) } + [(places.directory, true)]).map { path, isProject in
        HostFile(host: self, path: "\(path)/.lsp.json", isOfProject: isProject) {
          LanguageServers.ofClaudePlugin($0)
        }
      }
  }

  private func gemini(_ places: HostPlaces) -> [HostFile] {
    [(places.home, false), (places.directory, true)].map { directory, isProject in
      HostFile(
        host: self, path: "\(directory)/.gemini/settings.json", isOfProject: isProject
      ) { MCPServers.ofGemini($0) }
    }
  }

  private func opencode(_ places: HostPlaces) -> [HostFile] {
    let user = "\(places.configuration)/opencode"
    let files =
      ["config.json", "opencode.json", "opencode.jsonc"].map { ("\(user)/\($0)", false) }
      + [places.variable("OPENCODE_CONFIG")].compactMap { $0 }.map { ($0, false) }
      + ["opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"]
      .map { ("\(places.directory)/\($0)", true) }
    return files.map { path, isProject in
      HostFile(host: self, path: path, isOfProject: isProject) { MCPServers.ofOpenCode($0) }
    }
  }

  /// The files of the extension, one for each editor that may have it, and that of the command
  /// line.
  private func cline(_ places: HostPlaces) -> [HostFile] {
    let editors = ["Code", "Code - Insiders", "Code - OSS", "VSCodium", "Cursor", "Windsurf"]
    let users =
      editors.map { "\(places.configuration)/\($0)/User" }
      + ["\(places.home)/.vscode-server/data/User"]
    let extensions = users.map { "\($0)/globalStorage/saoudrizwan.claude-dev/settings" }
    let directories = extensions + ["\(places.home)/.cline/data/settings"]
    let named = [places.variable("CLINE_MCP_SETTINGS_PATH")].compactMap { $0 }
    return (named + directories.map { "\($0)/cline_mcp_settings.json" }).map {
      servers($0, ["mcpServers"])
    }
  }

  private func continueDev(_ places: HostPlaces) -> [HostFile] {
    let main = HostFile(
      host: self, path: "\(places.home)/.continue/config.yaml", format: .yaml
    ) { MCPServers.ofContinue($0) }
    let directories = [(places.home, false), (places.directory, true)]
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

  private func codex(_ places: HostPlaces) -> [HostFile] {
    let directory = places.variable("CODEX_HOME") ?? "\(places.home)/.codex"
    return [(directory, false), ("\(places.directory)/.codex", true)].map { directory, isProject in
      HostFile(
        host: self, path: "\(directory)/config.toml", format: .toml, isOfProject: isProject
      ) { MCPServers.find(at: ["mcp_servers"], in: $0) }
    }
  }

  private func cursor(_ places: HostPlaces) -> [HostFile] {
    [
      servers("\(places.home)/.cursor/mcp.json", ["mcpServers"]),
      servers("\(places.directory)/.cursor/mcp.json", ["mcpServers"], isOfProject: true),
    ]
  }

  private func vscode(_ places: HostPlaces) -> [HostFile] {
    let editions = ["Code", "Code - Insiders", "Code - OSS", "VSCodium"]
    var directories: [(path: String, isOfProject: Bool)] = []
    for edition in editions {
      let user = "\(places.configuration)/\(edition)/User"
      directories.append((user, false))
      directories += Self.entries("\(user)/profiles").map { ($0, false) }
    }
    directories += ["User", "Machine"].map { ("\(places.home)/.vscode-server/data/\($0)", false) }
    directories.append(("\(places.directory)/.vscode", true))
    return directories.flatMap { directory in
      [
        servers("\(directory.path)/mcp.json", ["servers"], isOfProject: directory.isOfProject),
        HostFile(
          host: self, path: "\(directory.path)/settings.json", isOfProject: directory.isOfProject
        ) { MCPServers.find(at: ["mcp", "servers"], in: $0) + LanguageServers.ofVSCode($0) },
      ]
    }
  }

  private func zed(_ places: HostPlaces) -> [HostFile] {
    [("\(places.configuration)/zed", false), ("\(places.directory)/.zed", true)].map {
      HostFile(host: self, path: "\($0)/settings.json", isOfProject: $1) {
        MCPServers.find(at: ["context_servers"], in: $0) + LanguageServers.ofZed($0)
          + LanguageServers.agentsOfZed($0)
      }
    }
  }

  private func helix(_ places: HostPlaces) -> [HostFile] {
    [("\(places.configuration)/helix", false), ("\(places.directory)/.helix", true)].map {
      HostFile(host: self, path: "\($0)/languages.toml", format: .toml, isOfProject: $1) {
        LanguageServers.ofHelix($0)
      }
    }
  }

  private func jupyter(_ places: HostPlaces) -> [HostFile] {
    let data =
      places.variable("JUPYTER_DATA_DIR")
      ?? (places.variable("XDG_DATA_HOME") ?? "\(places.home)/.local/share") + "/jupyter"
    let named = (places.environment["JUPYTER_PATH"] ?? "").split(separator: ":").map(String.init)
    let prefixes = ["VIRTUAL_ENV", "CONDA_PREFIX"].compactMap(places.variable)
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

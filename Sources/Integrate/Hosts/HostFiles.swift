import Linux

/// Which files a host may have. Those that don't exist are among them.
extension IntegratedHost {
  func files(_ places: HostPlaces) -> [HostFile] {
    switch self {
    case .claudeCode: claudeCode(places)
    case .claudeDesktop:
      [servers("\(places.configuration)/Claude/claude_desktop_config.json", ["mcpServers"])]
    case .codex: codex(places)
    case .cursor: cursor(places)
    case .vscode: vscode(places)
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
    return [
      HostFile(host: self, path: "\(directory)/.claude.json") { MCPServers.ofClaudeCode($0) },
      servers("\(places.directory)/.mcp.json", ["mcpServers"], isOfProject: true),
    ]
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
      directories += Self.subdirectories("\(user)/profiles").map { ($0, false) }
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
    return directories.flatMap { Self.subdirectories("\($0)/kernels") }.map { directory in
      HostFile(host: self, path: "\(directory)/kernel.json") {
        JupyterKernels.find(baseName(directory), in: $0)
      }
    }
  }

  /// None if there is no such directory.
  private static func subdirectories(_ path: String) -> [String] {
    // A directory that can't be listed has no files that could be changed.
    ((try? listDirectory(path)) ?? []).sorted().map { "\(path)/\($0)" }
  }
}

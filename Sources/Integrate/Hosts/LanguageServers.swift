/// The commands of language servers.
enum LanguageServers {
  /// The servers of `[language-server.NAME]`. Helix merges its own configuration with this one: a
  /// server without `args` gets Helix's arguments.
  static func ofHelix(_ root: ConfigValue) -> [CommandLocation] {
    (root["language-server"]?.members ?? []).map { member in
      var location = CommandLocation(
        name: member.name,
        shape: .split(
          table: ["language-server", member.name], command: "command", arguments: "args"))
      if member.value["command"] != nil, member.value["args"] == nil {
        location.refusal = .defaultArguments("`args`")
      }
      return location
    }
  }

  /// The servers of `.lsp.json`, the file of a plugin of Claude Code.
  static func ofClaudePlugin(_ root: ConfigValue) -> [CommandLocation] {
    (root.members ?? []).compactMap { member in
      guard member.value["command"] != nil else { return nil }
      return CommandLocation(
        name: member.name,
        shape: .split(table: [member.name], command: "command", arguments: "args"))
    }
  }

  /// The servers of `lsp.NAME.binary`. Other servers are Zed's own, and it starts them without
  /// configuration.
  static func ofZed(_ root: ConfigValue) -> [CommandLocation] {
    (root["lsp"]?.members ?? []).compactMap { member in
      guard member.value["binary"]?["path"] != nil else { return nil }
      return CommandLocation(
        name: member.name,
        shape: .split(
          table: ["lsp", member.name, "binary"], command: "path", arguments: "arguments"))
    }
  }

  /// The agents of `agent_servers.NAME`. Those without a command are Zed's own, or from its
  /// registry.
  static func agentsOfZed(_ root: ConfigValue) -> [CommandLocation] {
    MCPServers.find(at: ["agent_servers"], in: root).filter {
      root[["agent_servers", $0.name, "command"]] != nil
    }
  }

  private struct Setting {
    var name: String
    var path: String
    /// The setting for the arguments; nil if the extension has none.
    var arguments: String?
    /// True if the extension uses arguments of its own without that setting.
    var hasDefaults = false
  }

  private static let settings = [
    Setting(name: "clangd", path: "clangd.path", arguments: "clangd.arguments"),
    Setting(
      name: "sourcekit-lsp", path: "swift.sourcekit-lsp.serverPath",
      arguments: "swift.sourcekit-lsp.serverArguments"),
    Setting(
      name: "terraform-ls", path: "terraform.languageServer.path",
      arguments: "terraform.languageServer.args", hasDefaults: true),
    Setting(name: "rust-analyzer", path: "rust-analyzer.server.path"),
    Setting(name: "lua-language-server", path: "Lua.misc.executablePath"),
    Setting(name: "zls", path: "zig.zls.path"),
  ]

  /// The servers of VS Code's extensions whose path is in the settings.
  static func ofVSCode(_ root: ConfigValue) -> [CommandLocation] {
    settings.compactMap { setting in
      // An empty text is the default.
      guard let path = root[setting.path], path.text != "", !path.isWord("null") else {
        return nil
      }
      var location = CommandLocation(
        name: setting.name,
        shape: .split(
          table: [], command: setting.path, arguments: setting.arguments ?? "no arguments"))
      if let arguments = setting.arguments {
        if setting.hasDefaults, root[arguments] == nil {
          location.refusal = .defaultArguments("`\(arguments)`")
        }
      } else {
        location.refusal = .pathOnly
      }
      return location
    }
  }
}

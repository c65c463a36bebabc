/// The commands of MCP servers. Most hosts write them alike.
enum MCPServers {
  /// The servers in the table at `path`.
  static func find(
    at path: [String], in root: ConfigValue, project: String? = nil, disabled: Set<String> = []
  ) -> [CommandLocation] {
    (root[path]?.members ?? []).map { member in
      location(
        of: member.value, named: member.name, at: path + [member.name], project: project,
        isDisabled: disabled.contains(member.name))
    }
  }

  private static func location(
    of server: ConfigValue, named name: String, at path: [String], project: String? = nil,
    isDisabled: Bool = false
  ) -> CommandLocation {
    // Zed before 2025-06 has an object with the program and its arguments.
    let isObject = server["command"]?.members != nil
    let shape = CommandLocation.Shape.split(
      table: isObject ? path + ["command"] : path, command: isObject ? "path" : "command",
      arguments: "args")
    var location = CommandLocation(name: name, project: project, shape: shape)
    location.refusal = isDisabled ? .disabled : server.refusal
    return location
  }

  /// The servers in Claude Code's own file: the user's, and those of each project.
  static func ofClaudeCode(_ root: ConfigValue) -> [CommandLocation] {
    find(at: ["mcpServers"], in: root)
      + (root["projects"]?.members ?? []).flatMap { project in
        find(
          at: ["projects", project.name, "mcpServers"], in: root, project: project.name,
          disabled: Set((project.value["disabledMcpServers"]?.list ?? []).compactMap(\.text)))
      }
  }
}

extension MCPServers {
  /// The servers of Gemini CLI. `mcp.excluded` names servers that aren't started.
  static func ofGemini(_ root: ConfigValue) -> [CommandLocation] {
    let excluded = root[["mcp", "excluded"]]?.list ?? []
    return find(at: ["mcpServers"], in: root, disabled: Set(excluded.compactMap(\.text)))
  }

  /// The servers of OpenCode, in which one list has the program and its arguments. Version 2 has
  /// them in `mcp.servers`.
  static func ofOpenCode(_ root: ConfigValue) -> [CommandLocation] {
    [["mcp"], ["mcp", "servers"], ["lsp"]].flatMap { path in
      (root[path]?.members ?? []).compactMap { member in
        // `mcp.servers` isn't a server itself, and built-in language servers have no command.
        guard member.value["command"] != nil || member.value["type"] != nil else { return nil }
        var location = CommandLocation(
          name: member.name, shape: .list(path + [member.name, "command"]))
        location.refusal = member.value.refusal
        return location
      }
    }
  }

  /// The servers of Continue, which are a list of tables with a `name`. Only the first server with
  /// a name is used.
  static func ofContinue(_ root: ConfigValue) -> [CommandLocation] {
    var names: Set<String> = []
    return (root["mcpServers"]?.list ?? []).compactMap { server in
      guard let name = server["name"]?.text, names.insert(name).inserted else { return nil }
      return location(of: server, named: name, at: ["mcpServers", name])
    }
  }

  /// The servers of Goose: extensions with a command. Other extensions are built in, or remote.
  static func ofGoose(_ root: ConfigValue) -> [CommandLocation] {
    (root["extensions"]?.members ?? []).compactMap { member in
      let server = member.value
      guard server["cmd"] != nil || server["uri"] != nil else { return nil }
      var location = CommandLocation(
        name: member.name,
        shape: .split(table: ["extensions", member.name], command: "cmd", arguments: "args"))
      location.refusal = server.refusal
      return location
    }
  }
}

extension ConfigValue {
  /// The reason why a server isn't wrapped, regardless of its program.
  fileprivate var refusal: Refusal? {
    if self["disabled"]?.isWord("true") == true || self["enabled"]?.isWord("false") == true {
      return .disabled
    }
    if self["command"] != nil || self["cmd"] != nil {
      // A merged mapping of YAML may have the arguments.
      return self["<<"] != nil && self["args"] == nil ? .defaultArguments("`args`") : nil
    }
    return ["url", "serverUrl", "httpUrl", "uri"].contains { self[$0] != nil } ? .remote : nil
  }

  func isWord(_ word: String) -> Bool {
    if case .other(let text) = kind { text == word } else { false }
  }
}

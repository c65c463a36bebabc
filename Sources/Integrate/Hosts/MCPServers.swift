/// The commands of MCP servers, which most hosts write alike.
enum MCPServers {
  /// The servers in the table at `path`.
  static func find(
    at path: [String], in root: ConfigValue, project: String? = nil, disabled: Set<String> = []
  ) -> [CommandPlace] {
    (root[path]?.members ?? []).map { member in
      place(
        of: member, at: path + [member.name], in: root, project: project,
        isDisabled: disabled.contains(member.name))
    }
  }

  private static func place(
    of member: ConfigMember, at path: [String], in root: ConfigValue, project: String?,
    isDisabled: Bool
  ) -> CommandPlace {
    let server = member.value
    // Zed before 2025-06 has an object there.
    let isObject = server["command"]?.members != nil
    let shape = CommandPlace.Shape.split(
      table: isObject ? path + ["command"] : path, command: isObject ? "path" : "command",
      arguments: "args")
    var place = CommandPlace(name: member.name, project: project, shape: shape)
    if isDisabled || server.isDisabled {
      place.refusal = .disabled
    } else if server.isRemote {
      place.refusal = .remote
    }
    return place
  }

  /// Of Claude Code's own file: the user's servers, and those of each project.
  static func ofClaudeCode(_ root: ConfigValue) -> [CommandPlace] {
    find(at: ["mcpServers"], in: root)
      + (root["projects"]?.members ?? []).flatMap { project in
        find(
          at: ["projects", project.name, "mcpServers"], in: root, project: project.name,
          disabled: Set((project.value["disabledMcpServers"]?.list ?? []).compactMap(\.text)))
      }
  }
}

extension ConfigValue {
  fileprivate var isDisabled: Bool {
    self["disabled"]?.isWord("true") == true || self["enabled"]?.isWord("false") == true
  }

  fileprivate var isRemote: Bool {
    if self["command"] != nil { return false }
    return ["url", "serverUrl", "httpUrl"].contains { self[$0] != nil }
  }

  func isWord(_ word: String) -> Bool {
    if case .other(let text) = kind { text == word } else { false }
  }
}

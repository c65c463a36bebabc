/// The location of one server's command in a configuration.
struct CommandLocation: Sendable {
  enum Shape: Hashable, Sendable {
    /// A text with the program and a list of its arguments, both in the table at this path.
    case split(table: [String], command: String, arguments: String)
    /// A list of the program and its arguments, at this path.
    case list([String])
  }

  var name: String
  /// The directory of the project that the server belongs to, if the file has several projects.
  var project: String?
  var shape: Shape
  /// The reason why the command must stay as it is.
  var refusal: Refusal?

  /// The program and its arguments.
  func command(in root: ConfigValue) throws(Refusal) -> [String] {
    switch shape {
    case .split(let path, let command, let arguments):
      guard let table = root[path], let program = table[command] else { throw .noCommand }
      guard let program = program.text, !program.isEmpty else { throw .notText("`\(command)`") }
      guard let list = table[arguments] else { return [program] }
      return try [program] + texts(list, arguments)
    case .list(let path):
      guard let list = root[path] else { throw .noCommand }
      let arguments = try texts(list, path.last ?? "")
      guard let program = arguments.first else { throw .noCommand }
      if program.isEmpty { throw .notText("`\(path.last ?? "")`") }
      return arguments
    }
  }

  private func texts(_ value: ConfigValue, _ name: String) throws(Refusal) -> [String] {
    let texts = value.list.map { $0.compactMap(\.text) }
    guard let texts, texts.count == value.list?.count else { throw .notText("`\(name)`") }
    return texts
  }

  /// The paths of all values that belong to the command.
  var paths: [[String]] {
    switch shape {
    case .split(let path, let command, let arguments): [path + [command], path + [arguments]]
    case .list(let path): [path]
    }
  }
}

extension ConfigValue {
  /// Returns this value without the values at these paths.
  func removing(_ paths: [ArraySlice<String>]) -> ConfigValue {
    if let list {
      var result = self
      result.kind = .list(
        list.enumerated().map { index, value in
          guard let name = value["name"]?.text,
            index == list.firstIndex(where: { $0.isNamed(name) })
          else { return value }
          return value.removing(paths.filter { $0.first == name }.map { $0.dropFirst() })
        })
      return result
    }
    guard let members else { return self }
    let inner = Dictionary(grouping: paths.filter { !$0.isEmpty }) { $0[$0.startIndex] }
    var result = self
    result.kind = .table(
      ConfigTable(
        members.lazy.compactMap { member in
          guard let nested = inner[member.name]?.map({ $0.dropFirst() }) else { return member }
          if nested.contains(where: \.isEmpty) { return nil }
          var member = member
          member.value = member.value.removing(nested)
          return member
        }))
    return result
  }
}

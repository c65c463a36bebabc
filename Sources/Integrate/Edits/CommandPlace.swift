/// Where a configuration has the command of one server.
struct CommandPlace: Sendable {
  enum Shape: Hashable, Sendable {
    /// A text with the program and a list with its arguments, both in the table at this path.
    case split(table: [String], command: String, arguments: String)
    /// A list of the program and its arguments.
    case list([String])
  }

  var name: String
  /// The directory of the project that it belongs to, if the file has several.
  var project: String?
  var shape: Shape
  /// Why the command must stay as it is.
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
      let words = try texts(list, path.last ?? "")
      guard let program = words.first else { throw .noCommand }
      if program.isEmpty { throw .notText("`\(path.last ?? "")`") }
      return words
    }
  }

  private func texts(_ value: ConfigValue, _ name: String) throws(Refusal) -> [String] {
    let texts = value.list.map { $0.compactMap(\.text) }
    guard let texts, texts.count == value.list?.count else { throw .notText("`\(name)`") }
    return texts
  }

  /// Removes the command: what is left must mean the same before and after a change.
  func forget(in root: inout ConfigValue) {
    switch shape {
    case .split(let path, let command, let arguments):
      for name in [command, arguments] { root.remove(path + [name]) }
    case .list(let path): root.remove(path)
    }
  }
}

extension ConfigValue {
  fileprivate mutating func remove(_ path: [String]) {
    guard var members, let name = path.first,
      let index = members.firstIndex(where: { $0.name == name })
    else { return }
    if path.count > 1 {
      members[index].value.remove(Array(path.dropFirst()))
    } else {
      members.remove(at: index)
    }
    kind = .table(members)
  }
}

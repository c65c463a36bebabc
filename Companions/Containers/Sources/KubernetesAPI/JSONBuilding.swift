import JSONLines

extension JSON {
  /// An object. Members that are nil are left out.
  static func object(of members: KeyValuePairs<String, JSON?>) -> JSON {
    .object(members.compactMap { name, value in value.map { Member(name, $0) } })
  }

  /// An object of texts, sorted.
  static func texts(_ texts: [String: String]) -> JSON {
    .object(texts.sorted { $0.key < $1.key }.map { Member($0.key, .string($0.value)) })
  }

  /// The object's members by their names.
  var members: [String: JSON] {
    guard case .object(let members) = self else { return [:] }
    return Dictionary(members.map { ($0.name, $0.value) }) { $1 }
  }
}

import JSONLines

// Sentences may change in any version of Dormouse, decisions may not: recorded decisions are compared
// with the new ones without their prose.

extension JSON {
  /// Without reasons in words: `why` and `text`, and the values of a cause beside its case.
  var wordless: JSON {
    switch self {
    case .object(let members):
      .object(
        members.compactMap { member in
          if member.value.text != nil, ["why", "text"].contains(member.name) { return nil }
          return Member(member.name, member.isWordyCause ? .null : member.value.wordless)
        })
    case .array(let elements): .array(elements.map(\.wordless))
    default: self
    }
  }
}

extension JSON.Member {
  /// A case of `Cause` whose value is a sentence, or is missing in journals of earlier versions.
  fileprivate var isWordyCause: Bool {
    switch name {
    case "graceOver": true
    case "watchdog", "failed": value["_0"]?.text != nil
    default: false
    }
  }
}

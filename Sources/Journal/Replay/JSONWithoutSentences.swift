import JSONLines

// Recorded decisions are compared with new ones without their sentences. Sentences may change in
// any version of Dormouse; decisions may not.

extension JSON {
  /// This value without reasons in words: `why`, `text`, and the value of a cause beside its case.
  var withoutSentences: JSON {
    switch self {
    case .object(let members):
      .object(
        members.compactMap { member in
          if member.value.text != nil, ["why", "text"].contains(member.name) { return nil }
          return Member(
            member.name, member.isCauseWithSentence ? .null : member.value.withoutSentences)
        })
    case .array(let elements): .array(elements.map(\.withoutSentences))
    default: self
    }
  }
}

extension JSON.Member {
  /// True for a case of `Cause` whose value is a sentence, or is missing in journals of earlier
  /// versions.
  fileprivate var isCauseWithSentence: Bool {
    switch name {
    case "graceOver": true
    case "watchdog", "failed": value["_0"]?.text != nil
    default: false
    }
  }
}

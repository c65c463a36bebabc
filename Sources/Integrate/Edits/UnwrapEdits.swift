/// The changes that remove `dormouse wrap … --` from a command. Only these words are removed, also from a file
/// that has changed since they were put there.
struct UnwrapEdits {
  let document: ConfigDocument

  /// - Parameter keepsEmptyList: the list of arguments existed before, so that it stays when it is empty.
  func edits(_ place: CommandPlace, keepsEmptyList: Bool) throws(Refusal) -> [TextEdit] {
    let command = try place.command(in: document.root)
    let count: Int
    switch WrapWords.find(in: command) {
    case .nothing: return []
    case .unclear: throw .unclear
    case .words(let words): count = words
    }
    switch place.shape {
    case .list(let path):
      guard let list = document.root[path] else { throw .noCommand }
      return removal(ofFirst: count, from: list)
    case .split(let path, let command, let arguments):
      guard let table = document.root[path], let program = table.member(command),
        let list = table.member(arguments), let elements = list.value.list
      else { throw .noCommand }
      // The program itself isn't in the list, and the wrapped one is behind the words.
      let moved = document.bytes[elements[count - 1].range]
      let replaced = TextEdit(program.value.range, moved)
      if elements.count == count, !keepsEmptyList, !document.hasComment(in: list.value),
        let removal = removal(of: list, from: table)
      {
        return [replaced, TextEdit(removal)]
      }
      return [replaced] + removal(ofFirst: count, from: list.value)
    }
  }

  /// With the commas and blanks behind them, and without comments between them.
  private func removal(ofFirst count: Int, from list: ConfigValue) -> [TextEdit] {
    guard let elements = list.list else { return [] }
    if list.origin == .block { return blockRemoval(ofFirst: count, from: elements) }
    var ranges: [Range<Int>] = []
    func add(_ range: Range<Int>) {
      if let last = ranges.last, last.upperBound == range.lowerBound {
        ranges[ranges.count - 1] = last.lowerBound..<range.upperBound
      } else if !range.isEmpty {
        ranges.append(range)
      }
    }
    for (index, element) in elements.prefix(count).enumerated() {
      add(element.range)
      let comma = document.afterSpace(element.range.upperBound)
      guard document.bytes[comma] == UInt8(ascii: ",") else { continue }
      let before = element.range.upperBound..<comma
      if document.isBlank(before) { add(before) }
      add(comma..<comma + 1)
      guard index + 1 < elements.count else { continue }
      let after = (comma + 1)..<elements[index + 1].range.lowerBound
      if document.isBlank(after) { add(after) }
    }
    return ranges.map { TextEdit($0) }
  }

  /// Of items with dashes.
  private func blockRemoval(ofFirst count: Int, from elements: [ConfigValue]) -> [TextEdit] {
    guard let first = elements.first else { return [] }
    if elements.count == count {
      // Right behind the key, because on a line of its own it would need another indentation.
      var start = dash(before: first)
      while start > 0, document.bytes[start - 1].isBlank { start -= 1 }
      let hasKey = start > 0 && document.bytes[start - 1] == UInt8(ascii: ":")
      if !hasKey { start = dash(before: first) }
      return [
        TextEdit(
          start..<elements[count - 1].range.upperBound, (hasKey ? " []" : "  []").utf8)
      ]
    }
    let range = first.range.lowerBound..<elements[count].range.lowerBound
    let gaps = zip(elements, elements[1...count]).map { $0.range.upperBound..<$1.range.lowerBound }
    if gaps.allSatisfy(document.isDash) { return [TextEdit(range)] }
    return elements.prefix(count).map { TextEdit(dash(before: $0)..<$0.range.upperBound) }
  }

  private func dash(before element: ConfigValue) -> Int {
    let start = element.range.lowerBound
    return document.bytes[..<start].lastIndex(of: UInt8(ascii: "-")) ?? start
  }

  /// All of a member; nil: something is beside it that has to stay.
  private func removal(of member: ConfigMember, from table: ConfigValue) -> Range<Int>? {
    if member.isLine { return removalOfLine(member) }
    guard let members = table.members,
      let index = members.firstIndex(where: { $0.key == member.key })
    else { return nil }
    if index > 0 {
      let gap = members[index - 1].value.range.upperBound..<member.key.lowerBound
      if isComma(gap) { return gap.lowerBound..<member.value.range.upperBound }
    }
    if index + 1 < members.count {
      let next = members[index + 1].key.lowerBound
      if isComma(member.value.range.upperBound..<next) { return member.key.lowerBound..<next }
    }
    return nil
  }

  /// With the line end before it.
  private func removalOfLine(_ member: ConfigMember) -> Range<Int>? {
    let start = document.lineStart(member.key.lowerBound)
    let end = document.lineEnd(member.value.range.upperBound)
    guard start > 0, document.isBlank(start..<member.key.lowerBound),
      document.isBlank(member.value.range.upperBound..<end)
    else { return nil }
    let hasTwo = start > 1 && document.bytes[start - 2] == UInt8(ascii: "\r")
    return (start - (hasTwo ? 2 : 1))..<end
  }

  /// One comma and blanks.
  private func isComma(_ range: Range<Int>) -> Bool {
    let others = document.bytes[range].filter { !$0.isBlank }
    return others == [UInt8(ascii: ",")]
  }
}

extension ConfigDocument {
  /// Only blanks, line ends and the dashes of a YAML list are there.
  fileprivate func isDash(_ range: Range<Int>) -> Bool {
    bytes[range].allSatisfy { $0.isBlank || $0 == UInt8(ascii: "-") }
  }

  /// Something other than blanks and commas is between the elements.
  fileprivate func hasComment(in list: ConfigValue) -> Bool {
    if list.origin == .block {
      let elements = list.list ?? []
      return !zip(elements, elements.dropFirst()).allSatisfy {
        isDash($0.range.upperBound..<$1.range.lowerBound)
      }
    }
    var start = list.range.lowerBound + 1
    let ends = (list.list ?? []).map(\.range) + [list.range.upperBound - 1..<list.range.upperBound]
    for range in ends {
      let gap = bytes[start..<range.lowerBound]
      if gap.contains(where: { !$0.isBlank && $0 != UInt8(ascii: ",") }) { return true }
      start = range.upperBound
    }
    return false
  }
}

/// The edits that remove `dormouse wrap … --` from a command. Only these arguments are removed,
/// also if the file has changed since they were inserted.
struct UnwrapEdits {
  let document: ConfigDocument

  /// Returns the edits for one command.
  ///
  /// - Parameter keepsEmptyList: True if the list of arguments existed before: it stays when it is
  ///   empty.
  func edits(_ location: CommandLocation, keepsEmptyList: Bool) throws(Refusal) -> [TextEdit] {
    let command = try location.command(in: document.root)
    let count: Int
    switch WrapPrefix.find(in: command) {
    case .nothing: return []
    case .unclear: throw .unclear
    case .arguments(let found): count = found
    }
    switch location.shape {
    case .list(let path):
      guard let list = document.root[path] else { throw .noCommand }
      return removal(ofFirst: count, from: list)
    case .split(let path, let command, let arguments):
      guard let table = document.root[path], let program = table.member(command),
        let list = table.member(arguments), let elements = list.value.list
      else { throw .noCommand }
      // The list doesn't have the program itself, so the wrapped program is the last of the removed
      // elements.
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

  /// Removes the first elements of a list, with the commas and blanks behind them, but not the
  /// comments between them.
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

  /// Removes the first items of a YAML list with dashes.
  private func blockRemoval(ofFirst count: Int, from elements: [ConfigValue]) -> [TextEdit] {
    guard let first = elements.first else { return [] }
    if elements.count == count {
      // An empty list is written right behind the key: on a line of its own it would need another
      // indentation.
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

  /// The range of a whole member; nil if something beside it must stay.
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

  /// The range of a member on lines of its own, with the line end before it.
  private func removalOfLine(_ member: ConfigMember) -> Range<Int>? {
    let start = document.lineStart(member.key.lowerBound)
    let end = document.lineEnd(member.value.range.upperBound)
    guard start > 0, document.isBlank(start..<member.key.lowerBound),
      document.isBlank(member.value.range.upperBound..<end)
    else { return nil }
    let hasTwo = start > 1 && document.bytes[start - 2] == UInt8(ascii: "\r")
    return (start - (hasTwo ? 2 : 1))..<end
  }

  /// Returns whether the range has one comma and else only blanks.
  private func isComma(_ range: Range<Int>) -> Bool {
    document.bytes[range].filter { !$0.isBlank } == [UInt8(ascii: ",")]
  }
}

extension ConfigDocument {
  /// Returns whether the range has only blanks, line ends and the dashes of a YAML list.
  fileprivate func isDash(_ range: Range<Int>) -> Bool {
    bytes[range].allSatisfy { $0.isBlank || $0 == UInt8(ascii: "-") }
  }

  /// Returns whether something other than blanks and commas is between the elements.
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

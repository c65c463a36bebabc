/// The edits that insert `dormouse wrap --` before a command.
struct WrapEdits {
  let document: ConfigDocument
  let wrapPrefix: WrapPrefix

  func edits(_ location: CommandLocation) throws(Refusal) -> [TextEdit] {
    switch location.shape {
    case .list(let path):
      guard let list = document.root[path] else { throw .noCommand }
      return [try insertion(of: wrapPrefix.all.map(ConfigDocument.literal), into: list)]
    case .split(let path, let command, let arguments):
      guard let table = document.root[path], let program = table.member(command) else {
        throw .noCommand
      }
      let range = program.value.range
      try checkMove(of: program, named: command, into: table[arguments])
      // The program's text moves as it is written, so that undoing gives the same bytes.
      let moved =
        wrapPrefix.all.dropFirst().map(ConfigDocument.literal) + [Array(document.bytes[range])]
      let replaced = TextEdit(range, ConfigDocument.literal(wrapPrefix.program))
      if let list = table[arguments] { return [replaced, try insertion(of: moved, into: list)] }
      if table.origin == .block {
        return [replaced, try blockAddition(of: arguments, moved, after: program)]
      }
      let separator = isCompact(program) ? "," : ", "
      let array =
        [UInt8(ascii: "[")] + moved.joined(separator: Array(separator.utf8)) + [UInt8(ascii: "]")]
      return addition(of: arguments, array, after: program, replaced)
    }
  }

  /// Inserts literals before the first element. They are on lines of their own if the elements are.
  private func insertion(
    of literals: [[UInt8]], into list: ConfigValue
  ) throws(Refusal) -> TextEdit {
    let elements = list.list ?? []
    if list.origin == .block, let first = elements.first {
      return try blockInsertion(of: literals, before: first.range.lowerBound)
    }
    let inside = list.range.lowerBound + 1
    guard let first = elements.first else {
      return TextEdit(inside..<inside, literals.joined(separator: Array(", ".utf8)))
    }
    let start = first.range.lowerBound
    var isCompact = false
    if elements.count > 1 {
      let gap = first.range.upperBound..<elements[1].range.lowerBound
      isCompact = document.bytes[gap] == [UInt8(ascii: ",")]
    }
    var text = Array(literals.joined(separator: Array((isCompact ? "," : ", ").utf8)))
    text.append(UInt8(ascii: ","))
    let gap = inside..<start
    if document.isBlank(gap), document.bytes[gap].contains(UInt8(ascii: "\n")) {
      text += document.bytes[gap]
    } else if !isCompact {
      text.append(UInt8(ascii: " "))
    }
    return TextEdit(start..<start, text)
  }

  // MARK: arguments that weren't there

  private func isCompact(_ member: ConfigMember) -> Bool {
    !document.bytes[member.key.upperBound..<member.value.range.lowerBound].contains(0x20)
  }

  private func addition(
    of name: String, _ array: [UInt8], after member: ConfigMember, _ replaced: TextEdit
  ) -> [TextEdit] {
    if member.isLine { return [replaced, lineAddition(of: name, array, after: member)] }
    let key = member.key
    var start = key.lowerBound
    while start > 0, document.bytes[start - 1].isBlank { start -= 1 }
    var blanks = Array(document.bytes[start..<key.lowerBound])
    // Blanks between a comment and the key belong to the line only if they include its line end.
    let isPlain = start > 0 && "{,".utf8.contains(document.bytes[start - 1])
    let isUsable = isPlain || blanks.contains(UInt8(ascii: "\n"))
    if !isUsable || (blanks.isEmpty && !isCompact(member)) { blanks = [0x20] }
    let text =
      [UInt8(ascii: ",")] + blanks + self.key(name, beside: member) + equals(member) + array
    return [TextEdit(replaced.range, replaced.bytes + text)]
  }

  private func lineAddition(
    of name: String, _ array: [UInt8], after member: ConfigMember
  ) -> TextEdit {
    let end = document.lineEnd(member.value.range.upperBound)
    let start = document.lineStart(member.key.lowerBound)
    // The bytes before the key are the blanks of the line, and the beginning of a dotted key.
    let before = document.bytes[start..<member.lastKey.lowerBound]
    let hasMark = start == 0 && document.bytes.starts(with: ConfigDocument.byteOrderMark)
    let indentation = Array(before.dropFirst(hasMark ? 3 : 0))
    return TextEdit(
      end..<end,
      lineBreak(at: end, start) + indentation + key(name, beside: member)
        + equals(member) + array)
  }

  /// Returns the kind of line end of the line that ends at `end`. For the last line of a file it is
  /// that of the line before `start`.
  private func lineBreak(at end: Int, _ start: Int) -> [UInt8] {
    let crlf: [UInt8] = [0x0D, 0x0A]
    let endsWithTwo =
      end < document.bytes.count
      ? document.bytes[end...].starts(with: crlf)
      : document.bytes[..<start].suffix(2).elementsEqual(crlf)
    return endsWithTwo ? crlf : [0x0A]
  }

  // MARK: YAML without brackets

  /// Throws an error if the program's text would mean something else in the list of arguments.
  private func checkMove(
    of program: ConfigMember, named name: String, into list: ConfigValue?
  ) throws(Refusal) {
    guard document.format == .yaml, program.isLine else { return }
    let text = document.bytes[program.value.range]
    let isQuoted = text.first.map { "\"'".utf8.contains($0) } ?? false
    let isOneLine = !text.contains { $0 == 0x0A || $0 == 0x0D }
    let isFlow = list.map { $0.origin != .block } ?? false
    let isSafe = isQuoted || !isFlow || !text.contains { ",[]{}:?".utf8.contains($0) }
    guard isOneLine, isSafe else { throw .needsQuotes("`\(name)`") }
  }

  /// Returns the bytes before `offset` in its line. Of the dashes in them only the last one stays.
  private func indentation(
    before offset: Int, keepsDash: Bool
  ) throws(Refusal) -> (start: Int, bytes: [UInt8]) {
    let start = document.lineStart(offset)
    var bytes = Array(document.bytes[start..<offset])
    if start == 0, bytes.starts(with: ConfigDocument.byteOrderMark) { bytes.removeFirst(3) }
    let dash = UInt8(ascii: "-")
    guard bytes.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == dash }),
      !keepsDash || bytes.contains(dash)
    else { throw .needsQuotes("the command") }
    let last = keepsDash ? bytes.lastIndex(of: dash) : nil
    for index in bytes.indices where bytes[index] == dash && index != last { bytes[index] = 0x20 }
    return (start, bytes)
  }

  private func blockInsertion(
    of literals: [[UInt8]], before offset: Int
  ) throws(Refusal) -> TextEdit {
    let (start, before) = try indentation(before: offset, keepsDash: true)
    let next = lineBreak(at: document.lineEnd(offset), start) + before
    return TextEdit(offset..<offset, literals.flatMap { $0 + next })
  }

  private func blockAddition(
    of name: String, _ literals: [[UInt8]], after member: ConfigMember
  ) throws(Refusal) -> TextEdit {
    let (start, before) = try indentation(before: member.key.lowerBound, keepsDash: false)
    let end = document.lineEnd(member.value.range.upperBound)
    let next = lineBreak(at: end, start) + before
    let items = literals.flatMap { next + Array("  - ".utf8) + $0 }
    return TextEdit(end..<end, next + Array("\(name):".utf8) + items)
  }

  private func key(_ name: String, beside member: ConfigMember) -> [UInt8] {
    let isBare =
      switch document.format {
      case .json: false
      case .toml: name.utf8.allSatisfy { $0.isLetterOrDigit || $0 == UInt8(ascii: "_") }
      // The key is quoted if its neighbour is. Neither needs quotes: both names come from this
      // program.
      case .yaml: !"\"'".utf8.contains(document.bytes[member.key.lowerBound])
      }
    return isBare ? Array(name.utf8) : ConfigDocument.literal(name)
  }

  /// The bytes between a key and its value, as the file writes them for this member.
  private func equals(_ member: ConfigMember) -> [UInt8] {
    let between = document.bytes[member.key.upperBound..<member.value.range.lowerBound]
    let isPlain = between.allSatisfy { $0 == 0x20 || ":=".utf8.contains($0) }
    return isPlain ? Array(between) : Array((document.format == .toml ? " = " : ": ").utf8)
  }
}

/// The changes that put `dormouse wrap --` before a command.
struct WrapEdits {
  let document: ConfigDocument
  let words: WrapWords

  func edits(_ place: CommandPlace) throws(Refusal) -> [TextEdit] {
    switch place.shape {
    case .list(let path):
      guard let list = document.root[path] else { throw .noCommand }
      return [insertion(of: words.all.map(ConfigDocument.literal), into: list)]
    case .split(let path, let command, let arguments):
      guard let table = document.root[path], let program = table.member(command) else {
        throw .noCommand
      }
      let range = program.value.range
      // The program's text moves as it is written, so that undoing gives the same bytes.
      let moved =
        words.all.dropFirst().map(ConfigDocument.literal) + [Array(document.bytes[range])]
      let replaced = TextEdit(range, ConfigDocument.literal(words.program))
      if let list = table[arguments] { return [replaced, insertion(of: moved, into: list)] }
      let separator = isCompact(program) ? "," : ", "
      let array =
        [UInt8(ascii: "[")] + moved.joined(separator: Array(separator.utf8)) + [UInt8(ascii: "]")]
      return addition(of: arguments, array, after: program, replaced)
    }
  }

  /// Before the first element, and on lines of its own where each element has one.
  private func insertion(of literals: [[UInt8]], into list: ConfigValue) -> TextEdit {
    let inside = list.range.lowerBound + 1
    let elements = list.list ?? []
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
    // Blanks between a comment and the key are those of the line only if they have its line end.
    let isPlain = start > 0 && "{,".utf8.contains(document.bytes[start - 1])
    let isUsable = isPlain || blanks.contains(UInt8(ascii: "\n"))
    if !isUsable || (blanks.isEmpty && !isCompact(member)) { blanks = [0x20] }
    let text = [UInt8(ascii: ",")] + blanks + self.key(name) + equals(member) + array
    return [TextEdit(replaced.range, replaced.bytes + text)]
  }

  private func lineAddition(
    of name: String, _ array: [UInt8], after member: ConfigMember
  ) -> TextEdit {
    let end = document.lineEnd(member.value.range.upperBound)
    let start = document.lineStart(member.key.lowerBound)
    let crlf: [UInt8] = [0x0D, 0x0A]
    let endsWithTwo =
      end < document.bytes.count
      ? document.bytes[end...].starts(with: crlf)
      : document.bytes[..<start].suffix(2).elementsEqual(crlf)
    // The blanks of the line, and the beginning of a dotted key.
    let before = document.bytes[start..<member.lastKey.lowerBound]
    let hasMark = start == 0 && document.bytes.starts(with: ConfigDocument.byteOrderMark)
    let lineEnd: [UInt8] = endsWithTwo ? crlf : [0x0A]
    let indentation = Array(before.dropFirst(hasMark ? 3 : 0))
    return TextEdit(end..<end, lineEnd + indentation + key(name) + equals(member) + array)
  }

  private func key(_ name: String) -> [UInt8] {
    let isBare =
      document.format == .toml
      && name.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte)
          || (0x61...0x7A).contains(byte) || byte == UInt8(ascii: "_")
      }
    return isBare ? Array(name.utf8) : ConfigDocument.literal(name)
  }

  /// What is between a key and its value, as the file has it elsewhere.
  private func equals(_ member: ConfigMember) -> [UInt8] {
    let between = document.bytes[member.key.upperBound..<member.value.range.lowerBound]
    let isPlain = between.allSatisfy { $0 == 0x20 || ":=".utf8.contains($0) }
    return isPlain ? Array(between) : Array((document.format == .toml ? " = " : ": ").utf8)
  }
}

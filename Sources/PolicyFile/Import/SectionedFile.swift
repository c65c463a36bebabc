/// A file of `[section]` lines with `key = value` below them: a unit of systemd, or a
/// supervisord.conf.
struct SectionedFile {
  struct Entry {
    var key: String
    var value: String
    var position: Position
  }

  struct Section {
    var name: String
    var entries: [Entry] = []
    var position: Position
  }

  enum Syntax {
    /// systemd.syntax(7): `\` at a line's end continues the line; `#` and `;` begin a comment line.
    case unit
    /// The syntax of Python's configparser as supervisord uses it. An indented line continues the
    /// value above it. ` ;` or ` #` begins a comment anywhere.
    case supervisor
  }

  private(set) var sections: [Section] = []

  init(_ text: String, syntax: Syntax, sink: DiagnosticSink) {
    var continued: Entry?
    for (index, whole) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
      .enumerated()
    {
      let line = whole.drop { $0.isWhitespace }
      let position = Position(line: index + 1, column: whole.count - line.count + 1)
      if line.hasPrefix("#") || line.hasPrefix(";") { continue }
      if var entry = continued {
        continued = nil
        let remainder = syntax == .supervisor ? Self.withoutComment(line) : String(line)
        let isNext = syntax == .unit || (whole.first?.isWhitespace == true && !remainder.isEmpty)
        if isNext {
          entry.value += entry.value.isEmpty ? String(remainder) : " \(remainder)"
          continued = finish(&entry, syntax)
          continue
        }
      }
      if line.isEmpty { continue }
      if line.hasPrefix("[") {
        guard let end = line.firstIndex(of: "]") else {
          sink.error(at: position, "has `[` without its `]`")
          continue
        }
        sections.append(
          Section(name: String(line.dropFirst().prefix(upTo: end)), position: position))
        continue
      }
      let isSign: (Character) -> Bool =
        syntax == .unit ? { $0 == "=" } : { $0 == "=" || $0 == ":" }
      guard let sign = line.firstIndex(where: isSign), !sections.isEmpty else {
        sink.error(
          at: position,
          sections.isEmpty ? "stands before the first `[section]`" : "is no `key=value`")
        continue
      }
      var entry = Entry(
        key: Self.trimmed(line[..<sign]), value: String(line[sign...].dropFirst()),
        position: position)
      if syntax == .supervisor { entry.value = Self.withoutComment(Substring(entry.value)) }
      sections[sections.count - 1].entries.append(entry)
      continued = finish(&entry, syntax)
    }
  }

  /// Stores the value as it is now. Returns the entry if the next line may continue it.
  private mutating func finish(_ entry: inout Entry, _ syntax: Syntax) -> Entry? {
    var continues = syntax == .supervisor
    if syntax == .unit, entry.value.hasSuffix("\\") {
      entry.value.removeLast()
      continues = true
    }
    let section = sections.count - 1
    entry.value = Self.trimmed(Substring(entry.value))
    sections[section].entries[sections[section].entries.count - 1] = entry
    return continues ? entry : nil
  }

  private static func withoutComment(_ text: Substring) -> String {
    var previous: Character = "x"
    for index in text.indices {
      if ";#".contains(text[index]), previous.isWhitespace { return trimmed(text[..<index]) }
      previous = text[index]
    }
    return trimmed(text)
  }

  static func trimmed(_ text: Substring) -> String {
    var remainder = text.drop { $0.isWhitespace }
    while remainder.last?.isWhitespace == true { remainder.removeLast() }
    return String(remainder)
  }
}

/// Reads the keys of a section one by one, and records those that weren't read.
struct ForeignSection {
  private let entries: [SectionedFile.Entry]
  private var readKeys: Set<String> = []

  init(_ entries: [SectionedFile.Entry]) { self.entries = entries }

  /// Returns the values of a key in their order. An empty value removes those before it, as in
  /// systemd.
  mutating func all(_ key: String) -> [String] {
    readKeys.insert(key)
    var values: [String] = []
    for entry in entries where entry.key == key {
      if entry.value.isEmpty { values = [] } else { values.append(entry.value) }
    }
    return values
  }

  /// Returns the last value, if it isn't empty.
  mutating func text(_ key: String) -> String? { all(key).last }

  mutating func truth(_ key: String) -> Bool? {
    text(key).map { ["1", "yes", "true", "on"].contains($0.lowercased()) }
  }

  mutating func skip(_ keys: String...) { readKeys.formUnion(keys) }

  /// The keys that weren't read and aren't empty, in their order, each once.
  var leftovers: [String] {
    var keys: [String] = []
    for entry in entries where !entry.value.isEmpty && !readKeys.contains(entry.key) {
      if !keys.contains(entry.key) { keys.append(entry.key) }
    }
    return keys.map(shortened)
  }
}

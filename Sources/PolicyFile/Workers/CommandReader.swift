import YAML

/// Reads programs and their arguments. `${VAR}` is replaced by the worker's own environment after
/// the text has been split, so a value with blanks stays one word.
struct CommandReader {
  var expander: Expander

  /// - Parameter variables: the environment that the worker will have.
  init(variables: [String: String], owner: String = "the worker") {
    expander = Expander(variables: variables, owner: owner, leavesDollars: true)
  }

  /// Reads a list or one text. `nil`: the key is missing or wrong.
  func read(_ key: String, in reader: MappingReader) -> [String]? {
    reader.node(key).flatMap { read($0, called: key, in: reader) }
  }

  /// Reads a value that is in a list.
  func read(_ node: YAMLNode, called key: String, in reader: MappingReader) -> [String]? {
    if case .sequence(let sequence) = node {
      let arguments = sequence.map { reader.convert($0, called: key, as: .word, by: expander) }
      return nonEmpty(arguments, in: node, key: key, reader: reader)
    }
    let expects = "a list of words such as `[python3, server.py]`"
    let split = Converter<SplitCommand>.scalar(expects) { SplitCommand.split($0) }
    guard let command = reader.convert(node, called: key, as: split, by: nil) else { return nil }
    if let sign = command.shellSign, node.scalar?.style != .literal {
      reader.sink.warning(
        at: node.position,
        "`\(sign)` is passed to the program as an argument: no shell runs this command",
        suggestion: "for a shell, write `[sh, -c, '…']`")
    }
    let arguments = command.arguments.map { word -> String? in
      guard case .scalar(let whole) = node else { return nil }
      let node = YAMLNode.scalar(
        .init(word, tag: whole.tag, style: .doubleQuoted, mark: whole.mark))
      return reader.convert(node, called: key, as: .word, by: expander)
    }
    return nonEmpty(arguments, in: node, key: key, reader: reader)
  }

  private func nonEmpty(
    _ arguments: [String?], in node: YAMLNode, key: String, reader: MappingReader
  ) -> [String]? {
    guard !arguments.contains(nil) else { return nil }
    let arguments = arguments.compactMap(\.self)
    guard let program = arguments.first, !program.isEmpty else {
      reader.sink.error(at: node.position, "`\(key)` names no program")
      return nil
    }
    return arguments
  }
}

extension Converter where Value == String {
  /// A word of a command: any scalar as it is written, including the empty text in quotes.
  fileprivate static var word: Converter { .text("a list of words such as `[sleep, \"60\"]`") }
}

/// A command that was written as one text.
struct SplitCommand {
  var arguments: [String]
  /// A separate word that only a shell understands.
  var shellSign: String?

  /// Splits a text into words at blanks. `'…'` keeps everything, `"…"` keeps all but `\"` and `\\`,
  /// and `\` outside quotes keeps the next character. Nothing is expanded.
  static func split(_ text: String) -> Result<SplitCommand, Problem> {
    var command = SplitCommand(arguments: [], shellSign: nil)
    var word: String?
    var quote: Character?
    var quoted = false
    var escaped = false

    func finish() {
      guard let done = word else { return }
      if !quoted, shellSigns.contains(done), command.shellSign == nil { command.shellSign = done }
      command.arguments.append(done)
      (word, quoted) = (nil, false)
    }
    for character in text {
      if character == "\0" {
        return .problem("can't hold a NUL character")
      }
      if escaped {
        // Within double quotes, `\` is special only before these two characters.
        if quote == "\"", character != "\"", character != "\\" { word = (word ?? "") + "\\" }
        word = (word ?? "") + String(character)
        escaped = false
      } else if character == "\\", quote != "'" {
        escaped = true
      } else if character == quote {
        quote = nil
      } else if quote == nil, character == "'" || character == "\"" {
        (quote, quoted, word) = (character, true, word ?? "")
      } else if quote == nil, character.isWhitespace {
        finish()
      } else {
        word = (word ?? "") + String(character)
      }
    }
    if let quote {
      return .problem("has a quote (\(quote)) without its end")
    }
    if escaped { return .problem("ends with a `\\` that escapes nothing") }
    finish()
    return .success(command)
  }

  /// The words that only a shell understands.
  static let shellSigns: Set<String> =
    ["|", "||", "&", "&&", ";", "<", ">", ">>", "2>&1", "2>"]
}

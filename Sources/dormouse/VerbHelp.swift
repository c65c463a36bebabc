import ArgumentParser
import Control

/// The text of `dormouse VERB --help`: how the verb is called, what it does, its arguments and
/// options, and examples. The text is ArgumentParser's in another order, and no line of it is wider
/// than the terminal.
struct VerbHelp {
  private let error: any Error
  private let usage: [String]
  private let paragraphs: [String]
  private let examples: [String]

  /// The result is nil if `error` isn't a request for a verb's help.
  init?(for error: any Error) {
    guard DormouseCommand.exitCode(for: error) == .success else { return nil }
    let whole = DormouseCommand.fullMessage(for: error, columns: Self.unlimited)
    guard let overview = Self.section(of: whole, from: "OVERVIEW: ", to: "\n\nUSAGE: "),
      let usage = Self.section(of: whole, from: "\n\nUSAGE: ", to: "\n\n")
    else { return nil }
    self.error = error
    self.usage = usage.split(separator: "\n").map { line in
      String(line.drop { $0 == " " })
    }
    let (text, examples) = Self.cut(overview, at: "\n\nExamples:\n")
    paragraphs = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    self.examples = examples.split(separator: "\n").map(String.init)
  }

  /// - Parameter width: The width of the terminal in columns.
  func text(width: Int) -> String {
    // Options begin at column 26. ArgumentParser needs some columns to the right of that to break
    // their texts.
    let width = max(width, 48)
    var lines = usage.enumerated().flatMap { index, form in
      Self.wrapped(usage: form, lead: index == 0 ? "USAGE: " : "       ", to: width)
    }
    lines += [""] + paragraphs.flatMap { Control.wrapped($0, to: width) } + [""]
    lines += arguments(width)
    if !examples.isEmpty { lines += ["", "EXAMPLES:"] + examples }
    return lines.joined(separator: "\n") + "\n"
  }

  /// The text after the usage: arguments, options and subcommands.
  private func arguments(_ width: Int) -> [String] {
    let narrow = DormouseCommand.fullMessage(for: error, columns: width)
    guard let usage = narrow[...].firstRange(of: "\n\nUSAGE: ") else { return [] }
    let (_, remainder) = Self.cut(narrow[usage.upperBound...], at: "\n\n")
    var lines = remainder.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    while lines.last?.allSatisfy({ $0 == " " }) == true { lines.removeLast() }
    let lead = "  See 'dormouse help "
    if let last = lines.last, last.hasPrefix(lead) {
      let verb = last.dropFirst(lead.count).prefix { $0 != " " }
      lines[lines.count - 1] = "`dormouse \(verb) <subcommand> --help` has a subcommand's options."
    }
    return lines
  }

  /// Breaks a usage between arguments, and never inside of `[--option <value>]`. Options come
  /// before the other arguments.
  static func wrapped(usage: String, lead: String, to width: Int) -> [String] {
    let all = Self.arguments(of: usage)
    let name = all.prefix { $0.first?.isLetter == true }
    let remaining = all.dropFirst(name.count)
    // `[-- <words>]` isn't an option.
    func isOption(_ word: String) -> Bool { word.hasPrefix("[--") && !word.hasPrefix("[-- ") }
    let arguments = remaining.filter(isOption) + remaining.filter { !isOption($0) }
    let head = lead + name.joined(separator: " ")
    let isNarrow = head.count + 1 + (arguments.map(\.count).max() ?? 0) > width
    // Blanks within an argument are replaced while lines are broken, so that no line ends at one.
    let glue: Character = "\u{A0}"
    let text = arguments.map { String($0.map { $0 == " " ? glue : $0 }) }.joined(separator: " ")
    return Control.wrapped(
      head + (text.isEmpty ? "" : " \(text)"), to: width,
      indent: isNarrow ? lead.count + 4 : head.count + 1
    ).map { String($0.map { $0 == glue ? " " : $0 }) }
  }

  /// Divides a usage at blanks outside of brackets. `--` and what follows it stay together.
  private static func arguments(of usage: String) -> [String] {
    var arguments: [String] = []
    var depth = 0
    for word in usage.split(separator: " ") {
      if depth > 0 || arguments.last == "--" {
        arguments[arguments.count - 1] += " " + word
      } else {
        arguments.append(String(word))
      }
      depth += word.count { "[(".contains($0) } - word.count { "])".contains($0) }
    }
    return arguments
  }

  // MARK: parts of a text

  static let unlimited = 1_000_000

  private static func section(of text: String, from start: String, to end: String) -> Substring? {
    guard let begins = text[...].firstRange(of: start) else { return nil }
    return cut(text[begins.upperBound...], at: end).0
  }

  private static func cut(_ text: Substring, at mark: String) -> (Substring, Substring) {
    guard let match = text.firstRange(of: mark) else { return (text, "") }
    return (text[..<match.lowerBound], text[match.upperBound...])
  }
}

/// ArgumentParser's message about wrong arguments, with no line wider than the terminal.
enum UsageError {
  /// The result is nil if `error` isn't about wrong arguments.
  static func text(for error: any Error, width: Int) -> String? {
    guard DormouseCommand.exitCode(for: error) == .validationFailure else { return nil }
    let message = DormouseCommand.fullMessage(for: error, columns: VerbHelp.unlimited)
    if message.isEmpty { return nil }
    let lines = message.split(separator: "\n", omittingEmptySubsequences: false).flatMap { line in
      let lead = ["Error: ", "Help:  ", "Usage: ", "       "].first { line.hasPrefix($0) }
      guard let lead, ["Usage: ", "       "].contains(lead), width > lead.count else {
        return wrapped(String(line), to: width, indent: lead?.count ?? 2)
      }
      return VerbHelp.wrapped(
        usage: String(line.dropFirst(lead.count)), lead: lead, to: width)
    }
    return lines.joined(separator: "\n") + "\n"
  }
}

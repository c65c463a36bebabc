import Policy

/// A line of `ExecStart=` as a command of Dormouse (systemd.service(5), COMMAND LINES).
struct UnitCommand {
  private(set) var text: YAMLText
  private(set) var notes: [String] = []

  /// Converts a line. The result is nil if the line can't be read or has several commands.
  ///
  /// - Parameter expand: replaces `%` and a letter.
  init?(_ line: String, expand: (String) -> String) {
    let flags = line.prefix { "-@:+!|".contains($0) }
    guard let commands = UnitTokenizer.commands(String(line.dropFirst(flags.count))),
      commands.count == 1, var arguments = commands.first
    else { return nil }
    if flags.contains("@"), arguments.count > 1 {
      arguments.remove(at: 1)
      notes.append("`@`: the program gets its own name as the first argument.")
    }
    if flags.contains("+") || flags.contains("!") {
      notes.append("`+` and `!` in `ExecStart`: it gets no more privileges than `user` has.")
    }
    let texts = arguments.map { expand($0) }
    if flags.contains(":") {
      text = WorkerRenderer.command(texts)
    } else if texts.contains(where: Self.isWordOfVariable) {
      // Such a word becomes as many words as its value has, which only a shell can do.
      let quoted = texts.map { Self.isWordOfVariable($0) ? $0 : Self.forShell($0) }
      text = WorkerRenderer.command(["sh", "-c", "exec " + quoted.joined(separator: " ")])
    } else {
      text = .list(texts.map { .text(Self.value($0)) })
    }
  }

  /// Converts the lines of `ExecStop=` to a `stop_command`. The result is nil if that can't express
  /// them. A word may be the process ID of the main process, which is known only when the command
  /// runs.
  init?(stop lines: [String], expand: (String) -> String) {
    guard lines.count == 1, let line = lines.first else { return nil }
    let number = "$DORMOUSE_WORKER_PID"
    let text = line.replacing("${MAINPID}", with: "$MAINPID").replacing("$MAINPID", with: number)
    guard text.split(separator: " ").allSatisfy({ !$0.contains(number) || $0 == number }) else {
      return nil
    }
    self.init(text, expand: expand)
  }

  /// Returns true for a word that is one variable without braces, such as `$OPTIONS`.
  private static func isWordOfVariable(_ text: String) -> Bool {
    text.hasPrefix("$") && text.count > 1 && isVariable(text.dropFirst())
  }

  private static func isVariable(_ name: Substring) -> Bool {
    guard let first = name.first, !first.isNumber else { return false }
    return name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
  }

  /// Returns one word of a shell's line, in which `${VAR}` stays a variable.
  private static func forShell(_ text: String) -> String {
    guard text.contains("${") else {
      return ShellLine.quoted(text.replacing("$$", with: "$"))
    }
    let kept = text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    return "\"\(kept.replacing("`", with: "\\`"))\""
  }

  /// Converts a word with `${VAR}`. systemd replaces a variable that doesn't exist with nothing.
  private static func value(_ text: String) -> String {
    DollarText.replaced(text) { remainder in
      if remainder.hasPrefix("$") {
        let remainder = remainder.dropFirst()
        return (remainder.hasPrefix("{") ? "$$" : "$", remainder)
      }
      if remainder.hasPrefix("{"), let end = remainder.firstIndex(of: "}"),
        isVariable(remainder[..<end].dropFirst())
      {
        return ("${\(remainder[..<end].dropFirst()):-}", remainder[end...].dropFirst())
      }
      return (remainder.hasPrefix("{") ? "$$" : "$", remainder)
    }
  }

  /// Returns the signal of a command such as `/bin/kill -HUP $MAINPID`.
  static func signal(ofKill line: String) -> String? {
    let tokens = line.split(whereSeparator: \.isWhitespace).map { String($0) }
    guard let program = tokens.first?.drop(while: { "-@:+!".contains($0) }),
      ["kill", "/bin/kill", "/usr/bin/kill"].contains(String(program)),
      tokens.last == "$MAINPID" || tokens.last == "${MAINPID}"
    else { return nil }
    let options = tokens.dropFirst().dropLast().filter { $0 != "-s" && $0 != "--signal" }
    guard options.count <= 1 else { return nil }
    let text = options.first.map { $0.drop { $0 == "-" } } ?? "TERM"
    if let number = Int32(text) { return Signals.named.first { $0.number == number }?.name }
    let bare = String(text).after("SIG") ?? String(text)
    return Signals.number(of: bare) == nil ? nil : bare
  }
}

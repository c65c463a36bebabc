import Policy

/// Another supervisor's file as the text of a `dormouse.yaml`.
public struct ImportedConfiguration: Hashable, Sendable {
  /// The text. It has comments on what couldn't be imported.
  public var text: String
  /// The number of workers in it.
  public var workers: Int
  /// The number of comments on what couldn't be imported, or only in a similar way.
  public var notes: Int
}

/// The `dormouse.yaml` that is made from another file.
struct ImportedFile {
  var source: String
  var workers: [ImportedWorker] = []
  /// The notes on the file as a whole.
  var notes: [String] = []

  func rendered() -> ImportedConfiguration {
    var lines = ImportedWorker.comment(
      "From \(source), by `dormouse import`. Paths start from the directory of this file: put it"
        + " beside \(source). `dormouse policy check` checks it.", indent: "")
    lines += notes.flatMap { ImportedWorker.comment($0, indent: "") }
    // The policy is written although it is the default, so that the operator finds where to change
    // it.
    lines += ["", "policy: \(PolicyLibrary.usualPolicy)", ""]
    lines += [workers.isEmpty ? "workers: {}" : "workers:"]
    for worker in workers { lines += worker.lines() }
    let count = notes.count + workers.reduce(0) { $0 + $1.notes.count }
    return ImportedConfiguration(
      text: lines.joined(separator: "\n") + "\n", workers: workers.count, notes: count)
  }
}

struct ImportedWorker {
  var name: String
  /// The worker's description in the other file.
  var description: String?
  var notes: [String] = []
  var keys: [(String, YAMLText)] = []
  /// True if it isn't started automatically.
  var isStopped = false

  /// Stops a worker whose command has templates that weren't replaced, because it can't run.
  mutating func cannotRun(because templates: [String]) {
    guard !templates.isEmpty else { return }
    let list = quoted(Set(templates).sorted())
    notes.append(
      "It can't run as it is: write out the value of \(list), then remove `autostart: false`.")
    isStopped = true
  }

  fileprivate func lines() -> [String] {
    var lines: [String] = []
    if let description { lines += Self.comment(description, indent: "  ") }
    lines.append("  \(YAMLText.scalar(name)):")
    lines += notes.flatMap { Self.comment($0, indent: "    ") }
    let keys = isStopped ? keys + [("autostart", .plain("false"))] : keys
    return lines + keys.flatMap { YAMLText.lines($0, $1, indent: "    ") }
  }

  /// Writes a comment, broken at 88 columns. Nothing in the text may end the comment.
  fileprivate static func comment(_ text: String, indent: String) -> [String] {
    var lines: [String] = []
    var line = "\(indent)#"
    for word in text.unicodeScalars.map({ printable($0) }).split(separator: " ") {
      let word = String(String.UnicodeScalarView(word))
      if line.count + word.count > 87, line.count > indent.count + 1 {
        lines.append(line)
        line = "\(indent)#"
      }
      line += " \(word)"
    }
    return lines + [line]
  }

  private static func printable(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator, .format, .surrogate, .privateUse: " "
    default: scalar
    }
  }
}

/// Makes one worker from an entry of another supervisor's file.
protocol WorkerImport {
  var imported: ImportedWorker { get set }
}

extension WorkerImport {
  mutating func add(_ key: String, _ value: YAMLText) { imported.keys.append((key, value)) }

  /// Adds a note, which becomes a comment in the written file.
  mutating func report(_ text: String) { imported.notes.append(text) }

  /// Adds a note for each key that wasn't read.
  mutating func reportUnreadKeys(_ keys: [String], of section: String = "") {
    for key in keys { report("Not taken over: `\(section)\(key)`.") }
  }

  /// Adds the stop signal.
  ///
  /// - Parameter origin: the other file's key and value, for a note.
  mutating func addStopSignal(_ name: String, from origin: String) {
    let bare = name.after("SIG") ?? name
    if Signals.number(of: bare) != nil, !["STOP", "CONT", "TSTP", "CHLD"].contains(bare) {
      add("stop_signal", .plain(bare))
    } else {
      report("Not taken over: \(origin).")
    }
  }

  mutating func addGroup(of namespace: String?) {
    guard let namespace, namespace != "default" else { return }
    if NameRule.allows(namespace) {
      add("groups", .text(namespace))
    } else {
      report("Not taken over: `namespace`, whose name can't be a group's.")
    }
  }

  /// Adds variables, except those with names that no environment could have. If several have one
  /// name, the last one applies.
  mutating func addEnvironment(_ variables: [(String, YAMLText)]) {
    var pairs: [(String, YAMLText)] = []
    for (name, value) in variables where MappingReader.problem(withVariable: name) == nil {
      pairs.removeAll { $0.0 == name }
      pairs.append((name, value))
    }
    if !pairs.isEmpty { add("environment", .mapping(pairs)) }
  }
}

/// Lists names in quotes for a note: `` `a`, `b` ``.
func quoted(_ names: some Sequence<some StringProtocol>) -> String {
  names.map { "`\(shortened(String($0)))`" }.joined(separator: ", ")
}

extension NameRule {
  /// Returns the nearest text that can be a worker's name. It is empty if no character of the text
  /// can be in one.
  static func fitted(_ text: String) -> String {
    let letters = text.unicodeScalars.map { scalar -> Character in
      switch scalar {
      case "a"..."z", "A"..."Z", "0"..."9", "-", "_", ".": Character(scalar)
      default: "-"
      }
    }
    return String(letters.drop { $0 == "-" || $0 == "." }.prefix(64))
  }
}

/// Makes a command of Dormouse from a shell's line.
enum ShellLine {
  /// Returns the words of the line if a shell would only split it, and otherwise a command that
  /// runs the shell.
  static func command(_ line: String, shell: [String]) -> YAMLText {
    let arguments = line.split(whereSeparator: \.isWhitespace).map(String.init)
    if isSimple(line), let first = arguments.first, !first.contains("="), !builtins.contains(first)
    {
      return WorkerRenderer.command(arguments)
    }
    return WorkerRenderer.command(shell + [line])
  }

  /// Returns a word in quotes for a shell's line.
  static func quoted(_ word: String) -> String {
    let isPlain = isSimple(word) && !word.isEmpty && !word.contains(where: \.isWhitespace)
    return isPlain ? word : "'" + word.replacing("'", with: "'\\''") + "'"
  }

  private static func isSimple(_ line: String) -> Bool {
    line.unicodeScalars.allSatisfy { scalar in
      switch scalar {
      case "a"..."z", "A"..."Z", "0"..."9", " ", "\t": true
      default: "_./:=,@%+-".unicodeScalars.contains(scalar)
      }
    }
  }

  private static let builtins: Set<String> = [
    ".", ":", "alias", "cd", "command", "eval", "exec", "exit", "export", "if", "for", "read",
    "return", "set", "shift", "source", "test", "time", "times", "trap", "type", "ulimit", "umask",
    "unset", "until", "wait", "while",
  ]
}

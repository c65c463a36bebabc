/// Adds a worker to the text of a configuration, and removes it. All other lines keep their bytes,
/// including comments.
public struct WorkerAddition: Sendable {
  public var name: String
  public var command: [String]
  /// The worker's directory. nil: the configuration's directory.
  public var directory: String?
  public var environment: [String: String] = [:]
  public var importance: Int?
  /// True if the worker reports its readiness by sd_notify(3).
  public var notify = false
  public var settings: WorkerSettings

  /// The comment after the name. `removed` accepts only entries that have it.
  static let mark = "  # added by `dormouse run --save`; `dormouse rm` removes it"

  public init(name: String, command: [String], settings: WorkerSettings) {
    self.name = name
    self.command = command
    self.settings = settings
  }

  /// Returns the lines of the entry, with the indentation of the entries beside it.
  public func entry(indent: String = "  ") -> [String] {
    let inner = indent + indent
    var keys: [(String, YAMLText)] = [("command", WorkerRenderer.command(command))]
    if let directory { keys.append(("directory", WorkerRenderer.escaped(directory))) }
    if !environment.isEmpty {
      let pairs = environment.sorted { $0.key < $1.key }
      keys.append(
        ("environment", .mapping(pairs.map { ($0.key, WorkerRenderer.escaped($0.value)) })))
    }
    if let importance { keys.append(("importance", .plain("\(importance)"))) }
    if notify { keys.append(("notify", .plain("true"))) }
    return ["\(indent)\(YAMLText.scalar(name)):\(Self.mark)"]
      + keys.flatMap { key, value in YAMLText.lines(key, value, indent: inner) }
      + settings.lines(inner)
  }

  /// Returns the text with the worker. nil: `workers:` has no lines of its own, as in `workers: { …
  /// }`.
  public func added(to text: String) -> String? {
    var lines = Self.lines(of: text)
    if lines.last == "" { lines.removeLast() }
    let end = lines.first?.hasSuffix("\r") == true ? "\r" : ""
    guard let start = lines.firstIndex(where: { $0.hasPrefix("workers:") }) else {
      let gap = lines.isEmpty || lines.last == end ? [] : [""]
      return Self.text(lines + (gap + ["workers:"] + entry()).map { $0 + end })
    }
    switch Self.value(of: lines[start].dropFirst("workers:".count)) {
    case "": break
    case "{}", "null", "~": lines[start] = "workers:" + end
    default: return nil
    }
    let remainder = lines[(start + 1)...]
    let next = remainder.firstIndex { Self.isTop($0) } ?? lines.endIndex
    // The last line of the last entry. The comments and empty lines before the next key don't
    // belong to it.
    let last = remainder[..<next].lastIndex { $0.first == " " } ?? start
    let first = remainder[..<next].first {
      $0.first == " " && !$0.drop { $0 == " " }.hasPrefix("#")
    }
    let indent = first.map { String($0.prefix { $0 == " " }) } ?? "  "
    lines.insert(contentsOf: entry(indent: indent).map { $0 + end }, at: last + 1)
    return Self.text(lines)
  }

  /// Returns the text without the worker. nil: no entry of this name was added by `added(to:)`, or
  /// its comment was removed.
  public static func removed(_ name: String, from text: String) -> String? {
    var lines = Self.lines(of: text)
    let entry = "\(YAMLText.scalar(name)):\(mark)"
    guard
      let start = lines.firstIndex(where: {
        let line = $0.drop { $0 == " " }
        return $0.first == " " && (line == entry || line == entry + "\r")
      })
    else { return nil }
    let indent = lines[start].prefix { $0 == " " }.count
    let remainder = lines[(start + 1)...]
    let end =
      remainder.firstIndex {
        !$0.isEmpty && $0 != "\r" && $0.prefix { $0 == " " }.count <= indent
      } ?? lines.endIndex
    // Empty lines after the entry stay.
    let last = remainder[..<end].lastIndex { !$0.allSatisfy(\.isWhitespace) } ?? start
    lines.removeSubrange(start...last)
    return lines.joined(separator: "\n")
  }

  /// Splits the text into lines. `\r\n` is one character but two bytes of UTF-8, so the lines of
  /// such a file keep their `\r`.
  private static func lines(of text: String) -> [String] {
    text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map {
      String(Substring($0))
    }
  }

  private static func text(_ lines: [String]) -> String { lines.joined(separator: "\n") + "\n" }

  /// Returns the value without a comment and spaces.
  private static func value(of text: Substring) -> String {
    let end = text.firstIndex(of: "#") ?? text.endIndex
    return text[..<end].filter { !$0.isWhitespace }
  }

  /// Returns true for a line that ends the block.
  private static func isTop(_ line: String) -> Bool {
    guard let first = line.first else { return false }
    return first != " " && first != "#" && first != "\r"
  }
}

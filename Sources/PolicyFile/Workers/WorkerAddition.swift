/// One more worker in the text of a configuration, and its removal. All other lines keep their bytes, comments too.
public struct WorkerAddition: Sendable {
  public var name: String
  public var command: [String]
  /// nil: the configuration's.
  public var directory: String?
  public var environment: [String: String] = [:]
  public var importance: Int?
  public var notify = false
  public var settings: WorkerSettings

  /// After the name: `removed` takes only entries with it.
  static let mark = "  # added by `dormouse run --save`; `dormouse rm` removes it"

  public init(name: String, command: [String], settings: WorkerSettings) {
    self.name = name
    self.command = command
    self.settings = settings
  }

  /// The entry, with the indentation of those beside it.
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

  /// nil: `workers:` isn't written as lines of its own, such as in `workers: { … }`.
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
    let rest = lines[(start + 1)...]
    let next = rest.firstIndex { Self.isTop($0) } ?? lines.endIndex
    // What belongs to the last entry: not the comments and empty lines before the next key.
    let last = rest[..<next].lastIndex { $0.first == " " } ?? start
    let first = rest[..<next].first { $0.first == " " && !$0.drop { $0 == " " }.hasPrefix("#") }
    let indent = first.map { String($0.prefix { $0 == " " }) } ?? "  "
    lines.insert(contentsOf: entry(indent: indent).map { $0 + end }, at: last + 1)
    return Self.text(lines)
  }

  /// nil: no entry of this name was added by `added(to:)`, or its mark was removed.
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
    let rest = lines[(start + 1)...]
    let end =
      rest.firstIndex {
        !$0.isEmpty && $0 != "\r" && $0.prefix { $0 == " " }.count <= indent
      } ?? lines.endIndex
    // Empty lines after it stay.
    let last = rest[..<end].lastIndex { !$0.allSatisfy(\.isWhitespace) } ?? start
    lines.removeSubrange(start...last)
    return lines.joined(separator: "\n")
  }

  /// As `\r\n` is one character, of UTF-8: the lines of such a file keep their `\r`.
  private static func lines(of text: String) -> [String] {
    text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map {
      String(Substring($0))
    }
  }

  private static func text(_ lines: [String]) -> String { lines.joined(separator: "\n") + "\n" }

  /// Without a comment and spaces.
  private static func value(of text: Substring) -> String {
    let end = text.firstIndex(of: "#") ?? text.endIndex
    return text[..<end].filter { !$0.isWhitespace }
  }

  /// A line that ends the block.
  private static func isTop(_ line: String) -> Bool {
    guard let first = line.first else { return false }
    return first != " " && first != "#" && first != "\r"
  }
}

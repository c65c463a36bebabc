/// How much there is today of what there should be less of: a line for each rule and place. The
/// numbers may fall and never rise; one that is higher than what there is, is wrong, too, or there
/// would be room to rise.
struct Ratchet {
  static let path = "Tests/TidyTests/ratchet.txt"
  static let heading = """
    # What TidyTests permits: RULE PLACE NUMBER. The numbers only fall. `scripts/tidy` lowers those
    # that are too high; a number that would have to rise is a rule to keep instead \
    (CONTRIBUTING.md).

    """

  struct Key: Hashable, Comparable {
    var rule: String
    var area: String
    static func < (one: Key, other: Key) -> Bool {
      (one.rule, one.area) < (other.rule, other.area)
    }
  }

  var permitted: [Key: Int] = [:]

  init(_ text: String) throws {
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      let fields = line.split(separator: " ")
      guard fields.count == 3, let number = Int(fields[2]), number > 0 else { throw BadLine(line) }
      let key = Key(rule: String(fields[0]), area: String(fields[1]))
      guard permitted.updateValue(number, forKey: key) == nil else { throw BadLine(line) }
    }
  }

  struct BadLine: Error, CustomStringConvertible {
    var description: String
    init(_ line: Substring) {
      description = "\(Ratchet.path): not RULE PLACE NUMBER, or there twice: \(line)"
    }
  }

  static func amounts(_ findings: [Finding]) -> [Key: Int] {
    findings.reduce(into: [:]) { $0[Key(rule: $1.rule, area: $1.area), default: 0] += $1.amount }
  }

  /// What is wrong; nothing when there is exactly as much as is permitted.
  func complaints(about findings: [Finding]) -> [String] {
    let actual = Self.amounts(findings)
    let details = Dictionary(grouping: findings) { Key(rule: $0.rule, area: $0.area) }
    return Set(actual.keys).union(permitted.keys).sorted().compactMap { key in
      let (now, limit) = (actual[key] ?? 0, permitted[key] ?? 0)
      let line = "\(key.rule) \(key.area)"
      if now > limit {
        let shown = (details[key] ?? []).map { "\n    " + $0.detail }
        return
          "`\(line)` rose from \(limit) to \(now). One of these is new; \(Self.advice(key.rule)):"
          + shown.prefix(40).joined()
          + (shown.count > 40 ? "\n    and \(shown.count - 40) more" : "")
      }
      if now < limit {
        let new = now == 0 ? "remove the line" : "write `\(line) \(now)`"
        return
          "`\(line)` fell from \(limit) to \(now). Good: \(new) in \(Self.path), or run "
          + "scripts/tidy"
      }
      return nil
    }
  }

  private static func advice(_ rule: String) -> String {
    switch rule {
    case "try?": "catch the error, or say in a comment why it doesn't matter"
    case "libc": "use a wrapper of `Linux`, or write one there"
    case "long-file": "divide the file"
    case "long-function": "divide the function"
    case "unlabelled": "give labels to the parameters after the first"
    case "same-name": "give the file a name that no other has"
    case "boolean": "call it by a verb, or `didX` if it reports something"
    case "name": "name what is meant (NameRules.vague)"
    case "columns": "break the line"
    case "comment": "write a sentence that stands alone"
    case "word": "write the fact in other words (CONTRIBUTING.md, Plain English)"
    default: "there is no such rule"
    }
  }

  /// With numbers that are too high lowered; with `raises` all as they are.
  func text(for findings: [Finding], raises: Bool) -> String {
    let actual = Self.amounts(findings)
    let numbers = actual.map { key, now in
      (key, raises ? now : min(now, permitted[key] ?? 0))
    }
    return Self.heading
      + numbers.filter { $0.1 > 0 }.sorted { $0.0 < $1.0 }
      .map { "\($0.0.rule) \($0.0.area) \($0.1)\n" }.joined()
  }
}

/// Phrases of messages that were reworded, and must not come back: the fact is missing in them, or
/// the subject.
enum PhraseRule {
  static let forbidden: [StaticString] = [
    "was asked for", "waited for it", "waits for it:", "brought back", "bring back", "only told",
    "looked after", "looks after", "to be had", "can't be had", "gave back", "give back",
    "gave nothing back", "left alone", "as ever", "for good", "made no sense", "in force",
    "put away", "went away", "is gone", "are gone", "made good for", "on its own again",
    "come back when", "comes back when", "grace in the background was over", "is told what",
    "nothing speaks against", "all at once", "those that there are", "how isn't known",
    "isn't known any more", "take no more", "called off",
  ]

  /// Phrases that no comment, page or test name uses either (CONTRIBUTING.md).
  static let everywhere: [StaticString] = [
    " as ever ", " as ever,", " as ever.", " for good", " so long", " so many", "to be had",
    "is looked after",
    "are looked after", "made good for", " is gone", " are gone", "has gone", "have gone",
  ]

  /// In what the program says: comments don't count, and two words side by side are text.
  static let messages: @Sendable (SourceFile) -> [Finding] = { file in
    guard file.isSwift, file.path.hasPrefix("Sources/") else { return [] }
    var findings: [Finding] = []
    for (number, line) in file.lines.enumerated() where !isComment(line) {
      for phrase in forbidden where line.utf8Range(of: phrase) != nil {
        guard String(SourceFile.code(line)).utf8Range(of: phrase) != nil else { continue }
        findings.append(
          Finding(
            rule: "phrase", area: file.area, detail: "\(file.path):\(number + 1): \(phrase)"))
      }
    }
    return findings
  }

  private static func isComment(_ line: String) -> Bool {
    line.utf8.drop { $0 == UInt8(ascii: " ") }.starts(with: "//".utf8)
  }
}

import Yams

// Yams' composer, made safe and talkative. Its own shortcomings, and what is done here:
//
// - It stops at the first mapping with a duplicate key, and says where the *first* of the two is.
//   Here that key is given another first letter and the text is composed again, so that the rest
//   gets its diagnostics, too, and the reader of the mapping reports the *second*.
// - It hashes keys. An alias bomb as a key (`? *nine : x`) would be walked in full, exponentially;
//   as a value it costs nothing, because nodes share their storage and only known keys are read.
// - With the default resolver it makes `no`, `on` and `1:30` into something else. Here all scalars
//   are text, and who wants a number asks for one.

/// A composed text.
struct Document {
  /// `nil` where the text holds nothing but comments.
  var root: Node?
  /// Names of keys that were renamed because they stand twice in their mapping.
  var renamed: [String: String] = [:]

  /// Larger files are refused: nobody wrote them.
  static let sizeLimit = 1 << 20
  private static let duplicatesLimit = 32

  /// `nil` after a syntax error, which is in the sink then.
  static func compose(_ sink: DiagnosticSink) -> Document? {
    var text = sink.source.text
    guard text.utf8.count <= sizeLimit else {
      sink.error(at: nil, "the file is larger than 1MB: this is no configuration")
      return nil
    }
    guard AliasBomb.worstCase(of: text) <= AliasBomb.limit else {
      sink.error(
        at: nil, "the aliases (`*name`) in this file may unfold into too much",
        suggestion: "write the values out, or nest aliases less")
      return nil
    }
    var document = Document()
    while true {
      do {
        document.root = try Parser(yaml: text, resolver: .basic, encoding: .utf8).singleRoot()
        return document
      } catch YamlError.duplicatedKeysInMapping(_, let context) where document.canRename {
        guard let other = document.rename(at: context.mark, in: text) else {
          sink.report(YamlError.duplicatedKeysInMapping(duplicates: [], context: context))
          return nil
        }
        text = other
      } catch {
        sink.report(error)
        return nil
      }
    }
  }

  private var canRename: Bool { renamed.count < Self.duplicatesLimit }

  /// Replaces the first letter of the key at `mark` by one of a private area, the same number of
  /// scalars, so that no position changes.
  private mutating func rename(at mark: Mark, in text: String) -> String? {
    guard let substitute = Unicode.Scalar(UInt32(0xE000 + renamed.count)) else { return nil }
    var scalars = text.unicodeScalars
    guard var index = Self.index(of: mark, in: scalars) else { return nil }
    if scalars[index] == "\"" || scalars[index] == "'" { index = scalars.index(after: index) }
    var end = index
    while end < scalars.endIndex, Self.isKeyLetter(scalars[end]) { end = scalars.index(after: end) }
    guard index < end else { return nil }
    let name = String(scalars[index..<end])
    let other = String(substitute) + String(name.unicodeScalars.dropFirst())
    scalars.replaceSubrange(index..<scalars.index(after: index), with: [substitute])
    renamed[other] = name
    return String(scalars)
  }

  private static func isKeyLetter(_ scalar: Unicode.Scalar) -> Bool {
    scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
      || scalar == "-" || scalar == "_" || scalar == "."
  }

  private static func index(
    of mark: Mark, in scalars: String.UnicodeScalarView
  ) -> String.Index? {
    var index = scalars.startIndex
    var line = 1
    while line < mark.line {
      guard index < scalars.endIndex else { return nil }
      let scalar = scalars[index]
      scalars.formIndex(after: &index)
      let endsPair = scalar == "\r" && index < scalars.endIndex && scalars[index] == "\n"
      if SourceText.isLineEnd(scalar), !endsPair { line += 1 }
    }
    guard let found = scalars.index(index, offsetBy: mark.column - 1, limitedBy: scalars.endIndex),
      found < scalars.endIndex
    else { return nil }
    return found
  }
}

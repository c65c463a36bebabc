extension WorkerProtocol {
  /// The number of bytes that are kept of a text that is shown, such as a status or a task's name.
  public static let maxText = 512

  /// The text as it is shown. Characters that could move a terminal's cursor or hide the remainder
  /// of a line are replaced, and the text is cut at `bytes` between two characters of Unicode.
  ///
  /// A second application changes nothing. So both sides know a task by the same name, whichever of
  /// them shortened it, and a name from `taskExpired` can be sent back with `endTask`.
  public static func shown(_ text: String, atMost bytes: Int = maxText) -> String {
    var result = String.UnicodeScalarView()
    var length = 0
    for scalar in text.unicodeScalars {
      let shown: Unicode.Scalar =
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: "\u{FFFD}"
        default: scalar
        }
      length += UTF8.width(shown)
      guard length <= bytes else { break }
      result.append(shown)
    }
    return String(result)
  }
}

import YAML

/// Parses texts as YAML documents, and reports YAML's errors to the sink.
enum Document {
  /// The maximum size in bytes. No configuration is larger, so a larger file is another kind of
  /// file.
  static let sizeLimit = 1 << 20

  /// Parses the sink's text. The result is `nil` after a syntax error. Duplicate keys are reported,
  /// and the remaining text can be read.
  static func compose(_ sink: DiagnosticSink) -> YAMLDocument? {
    let text = sink.source.text
    guard text.utf8.count <= sizeLimit else {
      sink.error(at: nil, "the file is larger than 1MB, too large for a configuration")
      return nil
    }
    do throws(YAMLError) {
      let document = try YAMLDocument(parsing: text)
      for duplicate in document.duplicates {
        sink.error(
          at: Position(duplicate.mark),
          "`\(shortened(duplicate.key))` is given twice; "
            + "the first is in line \(duplicate.first.line)")
      }
      return document
    } catch {
      sink.report(error)
      return nil
    }
  }
}

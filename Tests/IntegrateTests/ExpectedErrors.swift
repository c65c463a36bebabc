import Testing

@testable import Integrate

/// Expects that the text can't be parsed, with this error at this position.
func expectError(
  _ text: String, _ format: ConfigDocument.Format, line: Int, column: Int, reason: String,
  at location: SourceLocation = #_sourceLocation
) {
  do throws(ConfigSyntaxError) {
    _ = try ConfigDocument(Array(text.utf8), format)
    Issue.record("\(text) was read", sourceLocation: location)
  } catch {
    let position = error.position(in: Array(text.utf8))
    #expect(
      position.line == line && position.column == column, "\(text): \(position) \(error.reason)",
      sourceLocation: location)
    #expect(error.reason.contains(reason), "\(text): \(error.reason)", sourceLocation: location)
  }
}

import Testing

@testable import Integrate

/// Expects that the text can't be parsed, with this error at this position.
func expectError(
  _ text: String, _ format: ConfigDocument.Format, line: Int, column: Int, why: String,
  at location: SourceLocation = #_sourceLocation
) {
  do throws(ConfigSyntaxError) {
    _ = try ConfigDocument(Array(text.utf8), format)
    Issue.record("\(text) was read", sourceLocation: location)
  } catch {
    let place = error.place(in: Array(text.utf8))
    #expect(
      place.line == line && place.column == column, "\(text): \(place) \(error.why)",
      sourceLocation: location)
    #expect(error.why.contains(why), "\(text): \(error.why)", sourceLocation: location)
  }
}

import YAML

/// Replaces process-compose's templates: `{{.NAME}}`, Go's text/template with only a variable in
/// it.
struct Template {
  /// The variables of the file and of the process.
  var variables: [String: String]

  /// Returns the text with the variables' values. The templates that remain because they aren't
  /// known here are added to `unknown`.
  private func render(_ text: String, _ unknown: inout [String]) -> String {
    var result = ""
    var remainder = Substring(text)
    while let start = remainder.firstRange(of: "{{"),
      let end = remainder[start.upperBound...].firstRange(of: "}}")
    {
      result += remainder[..<start.lowerBound]
      let inner = remainder[start.upperBound..<end.lowerBound].filter { !$0.isWhitespace }
      let whole = remainder[start.lowerBound..<end.upperBound]
      if inner.hasPrefix("."), let value = variables[String(inner.dropFirst())] {
        result += value
      } else {
        result += whole
        unknown.append(String(whole))
      }
      remainder = remainder[end.upperBound...]
    }
    return result + remainder
  }

  /// Replaces the templates in all scalars of a node. The names of keys stay.
  func render(_ node: YAMLNode, _ unknown: inout [String]) -> YAMLNode {
    switch node {
    case .scalar(var scalar):
      scalar.string = render(scalar.string, &unknown)
      return .scalar(scalar)
    case .sequence(var sequence):
      sequence.items = sequence.items.map { render($0, &unknown) }
      return .sequence(sequence)
    case .mapping(var mapping):
      mapping.entries = mapping.entries.map { ($0.key, render($0.value, &unknown)) }
      return .mapping(mapping)
    }
  }
}

import YAML

/// Replaces process-compose's templates: `{{.NAME}}`, Go's text/template with only a variable in
/// it.
struct Template {
  /// The variables of the file and of the process.
  var variables: [String: String]

  /// Returns the text with the variables' values, and the templates that remain because they aren't
  /// known here.
  func render(_ text: String) -> (text: String, unknown: [String]) {
    var result = ""
    var unknown: [String] = []
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
    return (result + remainder, unknown)
  }

  /// Replaces the templates in all scalars of a node. The names of keys stay.
  func render(_ node: YAMLNode) -> (node: YAMLNode, unknown: [String]) {
    switch node {
    case .scalar(var scalar):
      let (text, unknown) = render(scalar.string)
      scalar.string = text
      return (.scalar(scalar), unknown)
    case .sequence(var sequence):
      var unknown: [String] = []
      sequence.items = sequence.items.map { item in
        let (inner, more) = render(item)
        unknown += more
        return inner
      }
      return (.sequence(sequence), unknown)
    case .mapping(var mapping):
      var unknown: [String] = []
      mapping.entries = mapping.entries.map { key, value in
        let (inner, more) = render(value)
        unknown += more
        return (key, inner)
      }
      return (.mapping(mapping), unknown)
    }
  }
}

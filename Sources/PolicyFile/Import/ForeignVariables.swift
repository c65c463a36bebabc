/// Converts the variables in the texts of a compose file, Docker's or process-compose's, to
/// Dormouse's.
///
/// Both programs read the `.env` beside their file, too. Its values become the defaults here.
final class ForeignVariables {
  /// True if there is a `.env`.
  let hasFile: Bool
  private let values: [String: String]
  private var used: Set<String> = []
  private var unfit: Set<String> = []
  private let errors: [Diagnostic]

  /// - Parameter environmentFile: the text of `.env`. nil: there is none.
  init(environmentFile: String?) {
    hasFile = environmentFile != nil
    let sink = DiagnosticSink(source: SourceText(text: environmentFile ?? "", file: ".env"))
    let pairs = EnvironmentFile.parse(environmentFile ?? "", sink)
    values = Dictionary(pairs.map { ($0.name, $0.value) }) { $1 }
    errors = sink.diagnostics.filter { $0.severity == .error }
  }

  /// The notes on `.env`. They are complete when all texts have been converted.
  var notes: [String] {
    var notes: [String] = []
    if !used.isEmpty {
      notes.append(
        "From `.env`, as defaults: \(quoted(used.sorted())). Keep this file as private as `.env`, "
          + "and import again after a change of `.env`.")
    }
    if !unfit.isEmpty {
      notes.append(
        "Not taken over from `.env`: \(quoted(unfit.sorted())), whose value has `$` or `}`.")
    }
    for error in errors {
      let line = error.position.map { " line \($0.line)" } ?? ""
      notes.append("Not taken over from `.env`:\(line) \(error.message).")
    }
    return notes
  }

  /// Returns true if `.env` has the variable.
  func isInFile(_ name: String) -> Bool { values[name] != nil }

  /// Converts a text to one of Dormouse's configuration.
  ///
  /// - Parameter isCommand: true for a word of a command, in which only `${` is special.
  func converted(_ text: String, isCommand: Bool = false) -> String {
    converted(text, isCommand, depth: 0)
  }

  private func converted(_ text: String, _ isCommand: Bool, depth: Int) -> String {
    DollarText.replaced(text) { remainder in
      let isEscaped = remainder.hasPrefix("$")
      if !isEscaped, let variable = DollarVariable(remainder) {
        return (reference(to: variable, isCommand, depth: depth), variable.remainder)
      }
      let behind = isEscaped ? remainder.dropFirst() : remainder
      return (isCommand && !behind.hasPrefix("{") ? "$" : "$$", behind)
    }
  }

  private func reference(
    to variable: DollarVariable, _ isCommand: Bool, depth: Int
  ) -> String {
    let (name, behind) = (variable.name, variable.behind)
    let operation = [":-", ":?", ":+", "-", "?", "+"].first { behind.hasPrefix($0) }
    // A reference that can't be read here is reported by the check of the result.
    guard depth < Expander.maxDepth, behind.isEmpty || operation != nil else {
      return "${\(name)\(behind)}"
    }
    let text = String(behind.dropFirst(operation?.count ?? 0))
    let fileValue = valueInFile(name)
    if operation?.hasSuffix("+") == true {
      let inner = converted(text, isCommand, depth: depth + 1)
      return fileValue == nil ? "${\(name):+\(inner)}" : inner
    }
    if let fileValue { return "${\(name):-\(fileValue)}" }
    switch operation {
    case ":-", "-": return "${\(name):-\(converted(text, isCommand, depth: depth + 1))}"
    // The variable must have a value, as one without a default must in Dormouse.
    case ":?", "?": return "${\(name)}"
    default: return "${\(name):-}"
    }
  }

  /// Returns the value in `.env`. nil: there is none, it is empty, or it can't be a default.
  private func valueInFile(_ name: String) -> String? {
    guard let value = values[name], !value.isEmpty else { return nil }
    guard !value.contains(where: { "$}".contains($0) }) else {
      unfit.insert(name)
      return nil
    }
    used.insert(name)
    return value
  }
}

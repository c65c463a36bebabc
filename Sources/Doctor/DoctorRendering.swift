import Control

extension DoctorReport {
  /// For people: a table of what was tried, and below it what is lost and how to get it.
  ///
  /// - Parameter width: columns of the terminal.
  public func rendered(width: Int, color: Bool) -> String {
    let names = checks.map(\.name.count).max() ?? 0
    let columns = [max(names, "MECHANISM".count) + 2, "limited".count + 2]
    let indent = columns.reduce(0, +)
    var lines = ["dormouse \(version) on Linux \(kernel), as user \(user)", ""]
    lines.append(paint("MECHANISM".padded(columns[0]) + "RESULT".padded(columns[1]) + "FOUND", "1"))
    for check in checks {
      let found = wrapped(check.found, to: max(width - indent, 24))
      let first = check.name.padded(columns[0]) + paint(check.result, columns[1])
      for (index, part) in found.enumerated() {
        lines.append((index == 0 ? first : String(repeating: " ", count: indent)) + part)
      }
    }
    lines += details(width: width)
    lines += [""] + wrapped(verdict.text, to: width)
    return lines.joined(separator: "\n") + "\n"

    func paint(_ result: DoctorCheck.Result, _ count: Int) -> String {
      paint(result.rawValue, result.code) + String.blanks(count - result.rawValue.count)
    }
    func paint(_ text: String, _ code: String) -> String {
      color ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }
  }

  private func details(width: Int) -> [String] {
    checks.filter { $0.result != .works }.flatMap { check in
      ["", "\(check.name): \(check.result.rawValue)"]
        + labelled("without it  ", check.lost, width)
        + labelled("to enable   ", check.enable, width)
    }
  }

  private func labelled(_ label: String, _ text: String, _ width: Int) -> [String] {
    let label = "  \(label)"
    return wrapped(text, to: max(width - label.count, 24)).enumerated().map { index, part in
      (index == 0 ? label : String.blanks(label.count)) + part
    }
  }
}

extension DoctorCheck.Result {
  /// SGR codes (ECMA-48): green, yellow, red.
  fileprivate var code: String {
    switch self {
    case .works: "32"
    case .limited: "33"
    case .missing: "31"
    }
  }
}

extension String {
  fileprivate static func blanks(_ count: Int) -> String {
    String(repeating: " ", count: Swift.max(count, 0))
  }

  fileprivate func padded(_ width: Int) -> String { self + .blanks(width - count) }
}

import Control

extension DoctorDocument {
  /// The report as text: the verdict, its source, and what doesn't work, each with the way to
  /// enable it.
  ///
  /// - Parameters:
  ///   - width: The width of the terminal in columns.
  ///   - isVerbose: Adds a table of all checks, and what is lost without each that doesn't work.
  public func rendered(width: Int, color: Bool, isVerbose: Bool = false) -> String {
    var lines = wrapped(report.verdict.text, to: width) + wrapped(source, to: width)
    if let daemon {
      lines += wrapped(daemon.sentence, to: width)
      if isVerbose { lines += daemon.rights.flatMap { wrapped($0, to: width) } }
    }
    let comparison = shellSentence.map { [""] + wrapped($0, to: width) } ?? []
    if isVerbose {
      lines +=
        [""] + report.table(width: width, color: color)
        + report.checks.filter { $0.result != .works }.flatMap { $0.section(width: width) }
        + comparison
    } else {
      lines += report.summary(width: width, after: lines.count, before: comparison)
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private var source: String {
    let what = "dormouse \(report.version) on Linux \(report.kernel), as user \(report.user)"
    return daemon.map { "asked of the running daemon (pid \($0.pid)): \(what)" } ?? what
  }

  /// The differences between the caller's shell and the daemon; nil if only the shell was examined.
  private var shellSentence: String? {
    guard let shell else { return nil }
    let names = differences.map { "\($0.name) (\($0.result.rawValue))" }
    if names.isEmpty { return "Tried from your shell (user \(shell.user)), all of it is the same." }
    let maxNames = 8
    let others =
      names.count > maxNames ? ["and \(names.count - maxNames) more (--shell lists them)"] : []
    return "Tried from your shell (user \(shell.user)), these are different: "
      + (names.prefix(maxNames) + others).joined(separator: ", ") + "."
  }
}

extension DaemonContext {
  fileprivate var sentence: String {
    "It suspends workers by \(freezer.text); \(hibernation.text); \(counted(hibernated, "worker")) "
      + "\(hibernated == 1 ? "is" : "are") hibernated now."
  }

  fileprivate var rights: [String] {
    [
      "cgroup: \(cgroup.map { escaped($0) } ?? "none")",
      "capabilities: " + (capabilities.isEmpty ? "none" : capabilities.joined(separator: ", ")),
    ]
  }
}

extension DoctorReport {
  /// The height of a terminal, less room for the prompt.
  private static let maxLines = 25

  /// The lines of the mechanisms that don't work, as many as fit a terminal.
  ///
  /// - Parameters:
  ///   - count: The number of lines above.
  ///   - footer: The lines below.
  fileprivate func summary(width: Int, after count: Int, before footer: [String]) -> [String] {
    let notWorking = checks.filter { $0.result != .works && $0.need != .informational }
      .sorted { $0.need == .required && $1.need != .required }
    let works = checks.count { $0.result == .works }
    let all =
      ["", "\(works) of \(checks.count) mechanisms work; `dormouse doctor -v` lists them all."]
      + footer
    var lines: [String] = []
    for (index, check) in notWorking.enumerated() {
      let section = check.section(width: width)
      // Four lines are reserved for the names of the other mechanisms.
      if count + lines.count + section.count + 4 + all.count > Self.maxLines {
        lines += [""] + Self.names(notWorking[index...], width: width)
        break
      }
      lines += section
    }
    return lines + all
  }

  /// The names, as many as fit into three lines, and how many there are beside them.
  private static func names(_ checks: ArraySlice<DoctorCheck>, width: Int) -> [String] {
    for count in stride(from: checks.count, to: 0, by: -1) {
      let (names, others) = (checks.prefix(count).map(\.name), checks.count - count)
      let text = names.joined(separator: ", ") + (others > 0 ? ", and \(others) more." : ".")
      let lines = wrapped("Missing, too, or limited: \(text)", to: width)
      if lines.count <= 3 || count == 1 { return lines }
    }
    return []
  }

  fileprivate func table(width: Int, color: Bool) -> [String] {
    let names = checks.map(\.name.count).max() ?? 0
    let (first, second) = (max(names, "MECHANISM".count) + 2, "limited".count + 2)
    let head = padded("MECHANISM", to: first) + padded("RESULT", to: second) + "FOUND"
    return [Color.bold.paint(head, if: color)]
      + checks.flatMap { check in
        let result = check.result.color.paint(check.result.rawValue, if: color)
        return hanging(
          padded(check.name, to: first) + padded(result, to: second), check.found, to: width,
          minColumns: 24)
      }
  }
}

extension DoctorCheck {
  /// What is lost without the mechanism, and the way to enable it.
  fileprivate func section(width: Int) -> [String] {
    ["", "\(name): \(result.rawValue)"]
      + hanging("  without it  ", lost, to: width, minColumns: 24)
      + hanging("  to enable   ", enable, to: width, minColumns: 24)
  }
}

extension DoctorCheck.Result {
  fileprivate var color: Color {
    switch self {
    case .works: .green
    case .limited: .yellow
    case .missing: .red
    }
  }
}

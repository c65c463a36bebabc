import Control

/// The output of `dormouse ls`: a line for each project.
func renderProjects(
  _ projects: [ProjectReport], width: Int? = nil, color: Bool = false
) -> String {
  var table = Table(columns: [
    .init(title: "PROJECT", minWidth: 12), "STATE", .number("WORKERS"), .number("FOOTPRINT"),
    .number("SAVED"), "DIRECTORY",
  ])
  table.rows = projects.map { project in
    [
      .init(project.name.map(escaped) ?? "(none)"),
      project.isRunning ? .init("running", .green) : .init("stopped", .dim),
      .init(project.workers.map { "\($0)" } ?? "-"),
      .init(project.footprint.map(sizeText) ?? "-"), .init(project.saved.map(sizeText) ?? "-"),
      .init(project.directory.map(escaped) ?? "-"),
    ]
  }
  return table.lines(width: width, color: color, wrapsLast: true).joined(separator: "\n") + "\n"
}

/// The output of `dormouse policy list`: a line for each policy.
func renderPolicies(
  _ policies: [PoliciesReport.Policy], width: Int? = nil, color: Bool = false
) -> String {
  var table = Table(columns: [.init(title: "POLICY", minWidth: 12), "ACTIVE", "FOR"])
  table.rows = policies.map { policy in
    [
      .init(escaped(policy.name)), policy.isActive ? .init("yes", .green) : .init("-"),
      .init(policy.summary.map(escaped) ?? "-"),
    ]
  }
  return table.lines(width: width, color: color, wrapsLast: true).joined(separator: "\n") + "\n"
}

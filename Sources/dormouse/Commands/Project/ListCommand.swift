import ArgumentParser
import Control

struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List your projects, and whether their daemons run.",
    discussion: """
      A project is listed once `dormouse up` has started it, until its state directory is removed. \
      Your own daemon, which `dormouse daemon` starts, has no project and comes first.
      """)
  @Flag(help: "Print JSON (docs/json.md).") var json = false

  func run() throws {
    let paths = DefaultPaths.ofThisProcess()
    var projects: [ProjectReport] = []
    let userDaemon = inspect(
      socket: paths.socket(), ProjectReport(name: nil, socket: paths.socket()))
    if userDaemon.isRunning { projects.append(userDaemon) }
    for project in paths.projects() {
      let socket = paths.socket(of: project)
      var report = ProjectReport(name: project.name, socket: socket)
      report.id = project.id
      report.directory = project.directory
      report.stateDirectory = paths.stateDirectory(of: project)
      projects.append(inspect(socket: socket, report))
    }
    if json { return try Output.json(ProjectsReport(projects: projects)) }
    if projects.isEmpty { return try Output.line("no projects: `dormouse up` starts one") }
    try Output.show { renderProjects(projects, width: $0, color: $1) }
  }

  private func inspect(socket: String, _ report: ProjectReport) -> ProjectReport {
    var report = report
    do {
      var client = try ControlClient(connectingTo: socket)
      report.isRunning = true
      let workers = try client.perform(.ps, timeout: .seconds(2)).workers ?? []
      report.workers = workers.count
      report.footprint = workers.reduce(0) { $0 + $1.footprint }
      report.saved = workers.reduce(0) { $0 + ($1.saved ?? 0) }
    } catch {}  // No daemon runs, or it is busy and has no numbers.
    return report
  }
}

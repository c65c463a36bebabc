import Control
import Linux

/// Finds the project that an option or the current directory names.
struct ProjectLookup {
  private let paths: DefaultPaths

  init(_ paths: DefaultPaths) { self.paths = paths }

  /// Returns the project of the current directory. The result is nil if there is no dormouse.yaml
  /// upwards, or if the directory has been removed.
  static func ofCurrentDirectory() -> Project? {
    // A directory that was removed has no project.
    guard let here = try? currentDirectory() else { return nil }
    // The path is nil if the user has no configuration.
    let userDirectory = try? resolvedPath(DefaultPaths.ofThisProcess().configurationDirectory)
    // The user's own configuration belongs to the user's own daemon, and isn't a project.
    guard let project = Project.find(from: here),
      project.directory != userDirectory
    else { return nil }
    return project
  }

  /// Returns a project by its directory, or by its name or id in `dormouse ls`.
  func project(_ text: String) throws -> Project {
    let projects = paths.projects()
    let named = projects.filter { $0.name == text || $0.id == text }
    if named.count == 1 { return named[0] }
    if named.count > 1 {
      let ids = named.map { "`\(escaped($0.id))`" }.joined(separator: ", ")
      throw CommandFailure(
        .usage, "several projects are named `\(escaped(text))`: use one of \(ids)")
    }
    if text.contains("/") || text == "." || text == ".." {
      let directory = absolutePath(text, in: try currentDirectory())
      if let project = Project.find(from: directory) { return project }
      throw CommandFailure(.usage, "there is no dormouse.yaml in \(escaped(text)), nor above it")
    }
    let hint = hint(for: text, among: projects.map(\.name))
    throw CommandFailure(
      .usage,
      "there is no project `\(escaped(text))`"
        + (hint.isEmpty ? "; `dormouse ls` lists them" : hint))
  }

  /// Returns the project that is named, or else that of the current directory.
  func required(_ text: String?) throws -> Project {
    if let text { return try project(text) }
    if let here = Self.ofCurrentDirectory() { return here }
    throw CommandFailure(
      .usage,
      "there is no dormouse.yaml here, nor in a directory above: `dormouse init` makes one, "
        + "and --project names another directory")
  }
}

import Control
import Linux
import PolicyFile

/// Finds the project that is meant.
struct ProjectLookup {
  private let paths: DefaultPaths

  init(_ paths: DefaultPaths) { self.paths = paths }

  /// nil: no dormouse.yaml upwards, or the directory has been removed.
  static func ofCurrentDirectory() -> Project? {
    // A directory that was removed has none.
    guard let here = try? currentDirectory() else { return nil }
    // There is none where the user has no configuration.
    let own = try? resolvedPath(DefaultPaths.ofThisProcess().configurationDirectory)
    // The user's own configuration is that of the user's own daemon.
    guard let found = Project.find(from: here),
      found.directory != own
    else { return nil }
    return found
  }

  /// By `text`: a directory, or a name or id of `dormouse ls`.
  func project(_ text: String) throws -> Project {
    let known = paths.projects()
    let named = known.filter { $0.name == text || $0.id == text }
    if named.count == 1 { return named[0] }
    if named.count > 1 {
      let ids = named.map { "`\(escaped($0.id))`" }.joined(separator: ", ")
      throw CommandFailure(
        exit: .usage, text: "several projects are named `\(escaped(text))`: use one of \(ids)")
    }
    if text.contains("/") || text == "." || text == ".." {
      let directory = absolutePath(text, in: try currentDirectory())
      if let found = Project.find(from: directory) { return found }
      throw CommandFailure(
        exit: .usage, text: "there is no dormouse.yaml in \(escaped(text)), nor above it")
    }
    let hint = nearest(to: text, among: known.map(\.name)).map {
      "; did you mean `\(escaped($0))`?"
    }
    throw CommandFailure(
      exit: .usage,
      text: "there is no project `\(escaped(text))`\(hint ?? "; `dormouse ls` lists them")")
  }

  /// The one that is named, or that of the current directory.
  func required(_ text: String?) throws -> Project {
    if let text { return try project(text) }
    if let here = Self.ofCurrentDirectory() { return here }
    throw CommandFailure(
      exit: .usage,
      text:
        "there is no dormouse.yaml here, nor in a directory above: `dormouse init` makes one, "
        + "and --project names another directory")
  }
}

import Linux

/// A directory with a `dormouse.yaml`, whose workers have a daemon of their own.
public struct Project: Hashable, Sendable {
  /// The configuration's directory, without links.
  public let directory: String
  /// Distinguishes it from all others: the directory's name and a number of its path.
  public let id: String

  /// - Parameter directory: absolute, and without links.
  public init(directory: String) {
    self.directory = directory
    id = "\(Self.safe(Self.lastName(directory)))-\(Self.number(of: directory))"
  }

  /// The directory's name.
  public var name: String { Self.lastName(directory) }

  public var configuration: String {
    let yml = "\(directory)/dormouse.yml"
    return isAbsent("\(directory)/dormouse.yaml") && !isAbsent(yml)
      ? yml : "\(directory)/dormouse.yaml"
  }

  /// The project of a directory: the nearest `dormouse.yaml` upwards. nil: there is none.
  ///
  /// - Parameter directory: absolute.
  public static func find(from directory: String) -> Project? {
    // A directory that was removed, or that this user can't look into, has none.
    guard var path = try? resolvedPath(directory) else { return nil }
    while true {
      let base = path == "/" ? "" : path
      if ["yaml", "yml"].contains(where: { fileStatus(of: "\(base)/dormouse.\($0)") != nil }) {
        return Project(directory: path)
      }
      guard let slash = path.lastIndex(of: "/"), path != "/" else { return nil }
      path = slash == path.startIndex ? "/" : String(path[..<slash])
    }
  }

  private static func lastName(_ path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? "root"
  }

  /// For a file's name; a socket's path has room for 107 bytes.
  private static func safe(_ name: String) -> String {
    let letters = name.unicodeScalars.prefix(24).map { scalar -> Character in
      let isSafe =
        scalar.isASCII
        && (scalar.properties.isAlphabetic || "0123456789_".unicodeScalars.contains(scalar))
      return isSafe ? Character(scalar) : "-"
    }
    return String(letters)
  }

  /// FNV-1a (public domain), 32 bits: the same in each run, unlike Swift's hashes.
  static func number(of path: String) -> String {
    let hash = path.utf8.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 }
    let text = String(hash, radix: 16)
    return String(repeating: "0", count: 8 - text.count) + text
  }
}

extension DefaultPaths {
  /// Where a project's daemon listens.
  public func socket(of project: Project) -> String {
    "\(runtimeDirectory)/projects/\(project.id)/control.sock"
  }

  /// Where it keeps images, logs and records.
  public func stateDirectory(of project: Project) -> String {
    "\(projectsDirectory)/\(project.id)"
  }

  /// Of all projects that were ever started and not removed since.
  public var projectsDirectory: String { "\(stateDirectory)/projects" }

  /// Names the project's directory in its state directory, for `dormouse ls`.
  public func mark(of project: Project) -> String { "\(stateDirectory(of: project))/project" }

  /// The projects of this user, by name.
  public func projects() -> [Project] {
    // Without the directory there are none.
    let ids = (try? listDirectory(projectsDirectory)) ?? []
    let found = ids.compactMap { id -> Project? in
      // Another file, or the directory of one that is just being made.
      guard let text = try? readText("\(projectsDirectory)/\(id)/project") else { return nil }
      let project = Project(directory: String(text.drop { $0 == "\n" }.prefix { $0 != "\n" }))
      return project.id == id ? project : nil
    }
    return found.sorted { ($0.name, $0.directory) < ($1.name, $1.directory) }
  }
}

import Linux

/// A directory with a `dormouse.yaml`, whose workers have a daemon of their own.
public struct Project: Hashable, Sendable {
  /// The configuration's directory, without links.
  public let directory: String
  /// A unique identifier: the directory's name and a hash of its path.
  public let id: String

  /// - Parameter directory: an absolute path without links.
  public init(directory: String) {
    self.directory = directory
    id = "\(Self.safe(Self.lastName(directory)))-\(Self.number(of: directory))"
  }

  /// The directory's name.
  public var name: String { Self.lastName(directory) }

  /// The path of the project's configuration.
  public var configuration: String {
    let yml = "\(directory)/dormouse.yml"
    return isAbsent("\(directory)/dormouse.yaml") && !isAbsent(yml)
      ? yml : "\(directory)/dormouse.yaml"
  }

  /// The project of a directory: that of the nearest `dormouse.yaml` upwards, or nil if there is
  /// none.
  ///
  /// - Parameter directory: an absolute path.
  public static func find(from directory: String) -> Project? {
    // A directory that was removed, or that this user can't read, has no project.
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

  /// A name for a file. It is short, because a socket's path has room for 107 bytes.
  private static func safe(_ name: String) -> String {
    let letters = name.unicodeScalars.prefix(24).map { scalar -> Character in
      let isSafe =
        scalar.isASCII
        && (scalar.properties.isAlphabetic || "0123456789_".unicodeScalars.contains(scalar))
      return isSafe ? Character(scalar) : "-"
    }
    return String(letters)
  }

  /// A 32-bit FNV-1a hash (public domain). It is the same in each run, unlike Swift's hashes.
  static func number(of path: String) -> String {
    let hash = path.utf8.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 }
    let text = String(hash, radix: 16)
    return String(repeating: "0", count: 8 - text.count) + text
  }
}

extension DefaultPaths {
  /// The control socket of a project's daemon.
  public func socket(of project: Project) -> String {
    "\(runtimeDirectory)/projects/\(project.id)/control.sock"
  }

  /// The directory in which a project's daemon keeps images, logs and records.
  public func stateDirectory(of project: Project) -> String {
    "\(projectsDirectory)/\(project.id)"
  }

  /// The directory of all projects that were ever started and not removed since.
  public var projectsDirectory: String { "\(stateDirectory)/projects" }

  /// The file in the project's state directory that contains the project's directory, for `dormouse
  /// ls`.
  public func mark(of project: Project) -> String { "\(stateDirectory(of: project))/project" }

  /// The projects of this user, by name.
  public func projects() -> [Project] {
    // Without the directory there are no projects.
    let ids = (try? listDirectory(projectsDirectory)) ?? []
    let projects = ids.compactMap { id -> Project? in
      // This is another file, or the directory of a project that is just being created.
      guard let text = try? readText("\(projectsDirectory)/\(id)/project") else { return nil }
      let project = Project(directory: String(text.drop { $0 == "\n" }.prefix { $0 != "\n" }))
      return project.id == id ? project : nil
    }
    return projects.sorted { ($0.name, $0.directory) < ($1.name, $1.directory) }
  }
}

/// Handles paths as texts.
package enum FilePaths {
  /// Returns the name without the directory and the ending: `web` for `policies/web.yaml`.
  static func stem(of path: String) -> String {
    let name = name(of: path)
    for ending in [".yaml", ".yml"] where name.hasSuffix(ending) {
      return String(name.dropLast(ending.count))
    }
    return name
  }

  /// Returns the name without the directory: `web.yaml` for `policies/web.yaml`.
  package static func name(of path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? path
  }

  /// Returns the directory of a file. It is `.` for a bare name.
  package static func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// Returns a path without `.` and `..`, as far as the text shows, for comparison: `b.yaml` for
  /// `a/../b.yaml`.
  static func normalized(_ path: String) -> String {
    var components: [Substring] = []
    for component in path.split(separator: "/") where component != "." {
      if component == "..", let last = components.last, last != ".." {
        components.removeLast()
      } else {
        components.append(component)
      }
    }
    return (path.hasPrefix("/") ? "/" : "") + components.joined(separator: "/")
  }

  /// Returns a path relative to a directory as one relative to the working directory.
  static func resolve(_ path: String, from directory: String) -> String {
    if path.hasPrefix("/") || directory == "." { return path }
    var remainder = Substring(path)
    while remainder.hasPrefix("./") { remainder = remainder.dropFirst(2) }
    if remainder.isEmpty || remainder == "." { return directory }
    return directory.hasSuffix("/") ? directory + remainder : "\(directory)/\(remainder)"
  }
}

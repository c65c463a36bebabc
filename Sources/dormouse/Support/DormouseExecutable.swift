import Control
import Linux

/// The path by which other programs can start this executable.
enum DormouseExecutable {
  /// Returns the path as it was called, without following links: `/usr/bin/dormouse` stays after an
  /// upgrade, but the file behind a link may not.
  ///
  /// - Parameter isKept: True if the path is written to a file, in which it is found again by the
  ///   name `dormouse`.
  static func path(_ environment: [String: String], isKept: Bool = true) throws -> String {
    let running = "/proc/self/exe"
    let directory = try currentDirectory()
    if let name = CommandLine.arguments.first {
      do throws(CommandLookupError) {
        let path = try locateCommand(name, searchPath: environment["PATH"], directory: directory)
        // The file is compared, because another program may have this name, and `..` after a link
        // may lead to another directory.
        let match = [withoutDots(path), path].first { candidate in
          guard let file = fileStatus(of: candidate), let program = fileStatus(of: running) else {
            return false
          }
          return file.isSameFile(as: program) && (isNamed(candidate) || !isKept)
        }
        if let match { return match }
      } catch {}  // The caller may have passed any name.
    }
    guard let path = readLink(running), !isAbsent(path), isNamed(path) || !isKept else {
      throw CommandFailure(
        .notDone, "this executable isn't found under the name `dormouse`: call it by its full path")
    }
    return path
  }

  /// Returns the path without `.` and `..`.
  private static func withoutDots(_ path: String) -> String {
    let components = path.split(separator: "/").reduce(into: [Substring]()) {
      components, component in
      if component == ".." {
        _ = components.popLast()
      } else if component != "." {
        components.append(component)
      }
    }
    return "/" + components.joined(separator: "/")
  }

  private static func isNamed(_ path: String) -> Bool {
    path.split(separator: "/").last == "dormouse"
  }
}

import Control
import Glibc
import Linux
import PolicyFile

/// The files of a unit of systemd: its own, and its drop-ins.
struct UnitSource {
  let name: String
  let files: [UnitImport.File]

  /// Creates a source from one file, without drop-ins.
  init(file: String, text: String) {
    name = FilePaths.name(of: file)
    files = [UnitImport.File(path: file, text: text)]
  }

  /// Finds a unit of this machine in systemd.unit(5)'s directories. The first directory that has it
  /// counts.
  init(named unit: String) throws { try self.init(named: unit, in: Self.directories()) }

  init(named unit: String, in directories: [String]) throws {
    let name = unit.hasSuffix(".service") ? unit : unit + ".service"
    let names = [name] + (Self.template(of: name).map { [$0] } ?? [])
    for candidate in names {
      for directory in directories where !isAbsent("\(directory)/\(candidate)") {
        let path = "\(directory)/\(candidate)"
        // An alias is a link to the unit's file. The drop-ins of both names apply.
        let target = FilePaths.name(of: try resolvedPath(path))
        let isAlias = target.hasSuffix(".service") && !names.contains(target)
        let dropIns = try Self.dropIns(of: isAlias ? names + [target] : names, in: directories)
        self.name = name
        files = try ([path] + dropIns).map {
          UnitImport.File(path: $0, text: try Self.text(of: $0))
        }
        return
      }
    }
    let list = directories.map { escaped($0) }.joined(separator: ", ")
    throw CommandFailure(.badConfiguration, "there is no unit `\(escaped(name))` in \(list)")
  }

  func convert() -> ParseResult<ImportedConfiguration> {
    UnitImport.convert(unit: name, files: files, pathExists: { !isAbsent($0) }) {
      EnvironmentFile.read($0).value
    }
  }

  /// Returns `bot@.service` for `bot@alice.service`.
  private static func template(of name: String) -> String? {
    guard let at = name.firstIndex(of: "@") else { return nil }
    return name[...at] + ".service"
  }

  /// Returns the drop-ins by their names. Each name is from the first directory that has it.
  private static func dropIns(of names: [String], in directories: [String]) throws -> [String] {
    var paths: [String: String] = [:]
    for name in names {
      for directory in directories {
        // Most units have no drop-ins.
        for file in (try? listDirectory("\(directory)/\(name).d")) ?? []
        where file.hasSuffix(".conf") {
          if paths[file] == nil { paths[file] = "\(directory)/\(name).d/\(file)" }
        }
      }
    }
    return paths.sorted { $0.key < $1.key }.map(\.value)
  }

  /// Reads a file that is to be imported.
  static func text(of path: String) throws -> String {
    do { return try readText(path) } catch {
      throw CommandFailure(.badConfiguration, "\(error)")
    }
  }

  private static func directories() -> [String] {
    let system = [
      "/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system",
      "/usr/lib/systemd/system", "/lib/systemd/system",
    ]
    let paths = DefaultPaths.ofThisProcess()
    if getuid() == 0 { return system }
    let userDirectories = [
      "\(paths.home)/.config/systemd/user", "/etc/systemd/user", "/usr/lib/systemd/user",
    ]
    return userDirectories + system
  }
}

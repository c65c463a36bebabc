import Glibc
import Linux

/// Finds the file of a command as a shell in `directory` would. The daemon has another PATH and
/// directory, so the client resolves the command.
///
/// - Parameters:
///   - searchPath: the value of PATH; nil means the usual directories.
///   - directory: an absolute path.
public func locateCommand(
  _ command: String, searchPath: String?, directory: String
) throws(CommandLookupError) -> String {
  guard !command.isEmpty else { throw .notFound(command) }
  if command.contains("/") {
    let path = absolutePath(command, in: directory)
    switch kind(of: path) {
    case .program: return path
    case .missing: throw .notFound(command)
    case .directory: throw .isDirectory(command)
    case .other: throw .notExecutable(command)
    }
  }
  var refused: String?
  // POSIX: an empty entry means the current directory.
  let entries = (searchPath ?? "/usr/local/bin:/usr/bin:/bin")
    .split(separator: ":", omittingEmptySubsequences: false)
  for entry in entries {
    let path = absolutePath("\(entry.isEmpty ? "." : entry)/\(command)", in: directory)
    switch kind(of: path) {
    case .program: return path
    case .other: refused = refused ?? path
    case .missing, .directory: continue
    }
  }
  if let refused { throw .notExecutable(refused) }
  throw .notFoundInPath(command)
}

/// Makes a path absolute that is relative to `directory`. A leading `./` is removed.
public func absolutePath(_ path: String, in directory: String) -> String {
  if path.hasPrefix("/") { return path }
  var relative = path[...]
  while relative.hasPrefix("./") { relative = relative.dropFirst(2) }
  if relative.isEmpty || relative == "." { return directory }
  return directory.hasSuffix("/") ? directory + relative : "\(directory)/\(relative)"
}

/// The reason why a command can't be started.
public enum CommandLookupError: Error, Hashable, Sendable, CustomStringConvertible {
  case notFound(String)
  case notFoundInPath(String)
  case isDirectory(String)
  case notExecutable(String)

  public var description: String {
    switch self {
    case .notFound(let name): "there is no command `\(escaped(name))`"
    case .notFoundInPath(let name): "there is no command `\(escaped(name))` in PATH"
    case .isDirectory(let name): "`\(escaped(name))` is a directory, not a command"
    case .notExecutable(let name): "`\(escaped(name))` is not executable"
    }
  }
}

private enum FileKind { case program, missing, directory, other }

private func kind(of path: String) -> FileKind {
  guard let status = fileStatus(of: path) else { return .missing }
  switch status.st_mode & S_IFMT {
  case S_IFDIR: return .directory
  case S_IFREG: return access(path, X_OK) == 0 ? .program : .other
  default: return .other
  }
}

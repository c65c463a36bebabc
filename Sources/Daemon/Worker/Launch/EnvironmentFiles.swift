import Linux
import PolicyFile
import Supervision

/// The files of a worker's `env_file`. If the worker has a `user`, that user could replace the
/// files, so they are read with the rights of that user.
struct EnvironmentFiles: Sendable {
  let paths: [String]
  /// The user that the worker runs as; nil: the daemon's user.
  let account: Account?
  /// The names of variables that the files don't replace.
  let fixed: Set<String>

  /// Reads the files; later files take precedence. May wait for a file system, so it must not be
  /// called on the loop's thread.
  func read() throws(LaunchError) -> [String: String] {
    var result: [String: String] = [:]
    for path in paths {
      let parsed = try read(path)
      guard let variables = parsed.value else { throw .environmentFile(reason(parsed, path)) }
      result.merge(variables) { $1 }
    }
    return result.filter { !fixed.contains($0.key) }
  }

  private func read(_ path: String) throws(LaunchError) -> ParseResult<[String: String]> {
    guard let account else { return EnvironmentFile.read(path) }
    do throws(SystemCallError) {
      return try account.acting { () throws(SystemCallError) in EnvironmentFile.read(path) }
    } catch {
      throw .environmentFile("can't read its `env_file` \(path): \(error)")
    }
  }

  private func reason(_ parsed: ParseResult<[String: String]>, _ path: String) -> String {
    let error = parsed.errors.first
    let line = error?.position.map { ", line \($0.line)" } ?? ""
    let reader = account.map {
      ", read as user \($0.name.isEmpty ? "\($0.identity.user)" : $0.name)"
    }
    return "its `env_file` \(path)\(line)\(reader ?? ""): \(error?.message ?? "can't be read")"
  }
}

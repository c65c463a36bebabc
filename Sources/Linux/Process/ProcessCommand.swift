import Glibc

/// The command line and directory of a process, as far as this process may read them.
public struct ProcessCommand: Sendable {
  /// The process's arguments, as it shows them now (programs may overwrite them). They are empty
  /// for kernel threads.
  public var arguments: [String]
  /// The process's working directory; nil if it may not be read.
  public var directory: String?

  /// Whether a process was started with an environment variable.
  ///
  /// - Throws: EACCES if the environment may not be read.
  public static func hasEnvironment(
    _ name: String, _ pid: Int32
  ) throws(SystemCallError) -> Bool {
    let prefix = Array((name + "=").utf8)
    return try readNamedFile("/proc/\(pid)/environ").split(separator: 0).contains {
      $0.starts(with: prefix)
    }
  }

  public static func read(_ pid: Int32) throws(SystemCallError) -> ProcessCommand {
    let bytes = try readNamedFile("/proc/\(pid)/cmdline")
    var parts = bytes.split(separator: 0, omittingEmptySubsequences: false)
    if parts.last?.isEmpty == true { parts.removeLast() }
    var target = [CChar](repeating: 0, count: Int(PATH_MAX))
    let length = readlink("/proc/\(pid)/cwd", &target, target.count)
    let directory =
      length > 0
      ? String(decoding: target[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
    return ProcessCommand(
      arguments: parts.map { String(decoding: $0, as: UTF8.self) }, directory: directory)
  }
}

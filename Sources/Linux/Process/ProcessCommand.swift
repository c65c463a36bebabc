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
    return try readFile("/proc/\(pid)/environ").split(separator: 0).contains {
      $0.starts(with: prefix)
    }
  }

  public static func read(_ pid: Int32) throws(SystemCallError) -> ProcessCommand {
    ProcessCommand(
      arguments: arguments(in: try readFile("/proc/\(pid)/cmdline")),
      directory: readLink("/proc/\(pid)/cwd"))
  }

  /// The arguments in the content of a file `cmdline`.
  static func arguments(in bytes: [UInt8]) -> [String] {
    var arguments = bytes.split(separator: 0, omittingEmptySubsequences: false)
    if arguments.last?.isEmpty == true { arguments.removeLast() }
    return arguments.map { String(decoding: $0, as: UTF8.self) }
  }
}

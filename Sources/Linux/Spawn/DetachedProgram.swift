import CLinux
import Glibc

/// A program in a session of its own that outlives this process and its terminal. It inherits no
/// descriptor.
public struct DetachedProgram: Sendable {
  public let pid: Int32

  /// Starts a program with empty standard input. All of its output is appended to a file. It
  /// changes this process's directory for a moment.
  ///
  /// - Parameter command: the program's path, then its arguments.
  public init(
    _ command: [String], in directory: String, output: String
  ) throws(SystemCallError) {
    guard let path = command.first else {
      throw SystemCallError("posix_spawn", on: "", code: EINVAL)
    }
    // glibc's action that changes only the child's directory isn't available in Swift.
    let here = try Descriptor.open(".", Int32(CLINUX_O_PATH) | O_DIRECTORY)
    try systemCall("chdir", path: directory) { chdir($0) }
    defer { fchdir(here.raw) }
    try Self.closeAtExec()
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(
      &actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The caller may have blocked signals to read them from a queue.
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    let setSession: Int32 = 0x80
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | setSession))
    var pid: Int32 = 0
    var arguments = command.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    let code = posix_spawn(&pid, path, &actions, &attributes, &arguments, environ)
    if code != 0 { throw SystemCallError("posix_spawn", on: path, code: code) }
    self.pid = pid
  }

  /// Marks inherited descriptors, such as a script's lock. Otherwise they would stay open while the
  /// program runs.
  private static func closeAtExec() throws(SystemCallError) {
    for number in try listDirectory("/proc/self/fd").compactMap({ Int32($0) }) where number > 2 {
      _ = fcntl(number, F_SETFD, FD_CLOEXEC)
    }
  }

  /// Sends a signal. Don't call it after `exitCode` has returned a number: another process may have
  /// the pid by then.
  public func signal(_ number: Int32) throws(SystemCallError) {
    _ = try systemCall("kill", on: "\(pid)") { kill(pid, number) }
  }

  /// The exit code as a shell reports it; nil while the program runs.
  public func exitCode() -> Int32? {
    var status: Int32 = 0
    guard kernelResult({ waitpid(pid, &status, WNOHANG) }) == pid else { return nil }
    let signal = status & 0x7F
    return signal == 0 ? status >> 8 & 0xFF : 128 + signal
  }
}

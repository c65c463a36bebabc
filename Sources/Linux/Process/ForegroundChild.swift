import CLinux
import Glibc

/// A program that runs in the foreground, as a shell starts one: in this process's session and
/// process group, at its terminal, with its descriptors and environment. Ctrl-C and Ctrl-Z at the
/// terminal reach both processes.
public final class ForegroundChild {
  public let identity: ProcessIdentity
  /// The pidfd, which polls readable when the program has ended.
  public let pidfd: Descriptor
  private var end: End?

  public enum End: Hashable, Sendable {
    case exited(Int32)
    case signaled(Int32)
  }

  /// Starts the program. Call it before any signal is blocked: the program inherits the signal
  /// mask.
  ///
  /// - Parameter firstArgument: the index in this process's arguments at which the program's own
  ///   arguments begin, with argv[0]. They are passed byte for byte.
  public init(path: String, firstArgument: Int) throws(SystemCallError) {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // Signals that Swift's runtime or this process ignores must not be ignored in the program.
    let ignored = clinux_ignored_signals()
    var defaults = sigset_t()
    sigemptyset(&defaults)
    for number in [SIGPIPE, SIGXFSZ] where !ProcessStatus.contains(ignored, number) {
      sigaddset(&defaults, number)
    }
    posix_spawnattr_setsigdefault(&attributes, &defaults)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
    var pid: Int32 = 0
    let code = posix_spawn(
      &pid, path, nil, &attributes, CommandLine.unsafeArgv + firstArgument, environ)
    if code != 0 { throw SystemCallError("posix_spawn", on: path, code: code) }
    // The child isn't reaped yet, so the pid is still its own, even if it has ended.
    identity = try ProcessIdentity.current(of: pid)
    pidfd = try Descriptor.pidfd(of: pid)
  }

  /// Returns how the program ended; nil while it runs. It also reaps the program's orphans that
  /// have become children of this process. It never waits.
  public func reap() -> End? {
    while end == nil {
      var status: Int32 = 0
      let pid = kernelResult { waitpid(-1, &status, WNOHANG) }
      if pid == -EINTR { continue }
      if pid <= 0 { return nil }
      guard pid == identity.pid else { continue }
      let signal = status & 0x7F
      end = signal == 0 ? .exited(status >> 8 & 0xFF) : .signaled(signal)
    }
    return end
  }
}

import CLinux
import Glibc

/// A program in our place: in our session and process group, at our terminal, with our descriptors
/// and environment, as a shell starts one. Ctrl-C and Ctrl-Z at the terminal reach it as they reach
/// us.
public final class ForegroundChild {
  public let identity: ProcessIdentity
  /// Polls readable when it has ended.
  public let pidfd: Descriptor
  private var end: End?

  public enum End: Hashable, Sendable {
    case exited(Int32)
    case signaled(Int32)
  }

  /// `firstArgument`: where in our own arguments its own begin, with argv[0]; byte for byte. Before
  /// any signal is blocked: it begins with those blocked that we have.
  public init(path: String, firstArgument: Int) throws(SystemCallError) {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // What Swift's runtime or we ignore for ourselves is nothing that the program asked for.
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
    // Not reaped yet, so the number is still its own, even if it has ended.
    identity = try ProcessIdentity.current(of: pid)
    pidfd = try Descriptor.pidfd(of: pid)
  }

  /// How it ended; nil while it runs. Reaps orphans of its that have become ours, too.
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

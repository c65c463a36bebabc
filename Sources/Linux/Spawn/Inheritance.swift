import CLinux
import Glibc

/// What a program inherits unchanged, because it runs instead of this process: arguments and
/// environment byte for byte (they needn't be UTF-8), additional descriptors, ignored signals.
public struct Inheritance: Hashable, Sendable {
  /// The index in this process's arguments at which the program's own arguments begin, with
  /// argv[0].
  public var firstArgument: Int
  /// The descriptors that are inherited in addition to 0, 1 and 2. They keep their numbers.
  public var descriptors: [Int32]
  /// The set of ignored signals, with the bits of `ProcessStatus`.
  public var ignoredSignals: UInt64
  /// A pipe to which the child writes its pid (four bytes) before it executes.
  public var announcement: Int32?
  /// True if the program stays in this process's session and process group. Otherwise it leads a
  /// session of its own, which has no terminal.
  public var keepsSession = false

  public init(
    firstArgument: Int, descriptors: [Int32] = [], ignoredSignals: UInt64 = 0,
    announcement: Int32? = nil
  ) {
    self.firstArgument = firstArgument
    self.descriptors = descriptors
    self.ignoredSignals = ignoredSignals
    self.announcement = announcement
  }

  /// Reads what this process has inherited itself. Call it before any descriptor is opened.
  public static func ofThisProcess(firstArgument: Int) -> Inheritance {
    let open = (try? listNumbers("/proc/self/fd")) ?? []
    // The list includes the descriptor through which it was read, which is closed by now.
    let inherited = open.filter { $0 > STDERR_FILENO && fcntl($0, F_GETFD) == 0 }
    return Inheritance(
      firstArgument: firstArgument, descriptors: inherited, ignoredSignals: clinux_ignored_signals()
    )
  }

  /// The program's own arguments: a `char *const[]` that ends with nil and is valid until this
  /// process ends.
  var arguments: UnsafePointer<UnsafeMutablePointer<CChar>?> {
    UnsafeRawPointer(CommandLine.unsafeArgv + firstArgument)
      .assumingMemoryBound(to: UnsafeMutablePointer<CChar>?.self)
  }

  /// Executes the program in this process. It returns only if that fails, with the error's number.
  public func execute(_ path: String) -> Int32 {
    for number in [SIGPIPE, SIGXFSZ] where !ProcessStatus.contains(ignoredSignals, number) {
      signal(number, SIG_DFL)
    }
    // A program that is spawned begins without blocked signals, too.
    var none = sigset_t()
    sigemptyset(&none)
    sigprocmask(SIG_SETMASK, &none, nil)
    clinux_restore_limits()
    clinux_stop_being_subreaper()
    return -kernelResult(path) { execv($0, CommandLine.unsafeArgv + firstArgument) }
  }
}

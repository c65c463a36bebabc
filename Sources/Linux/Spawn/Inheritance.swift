import CLinux
import Glibc

/// What a program inherits unchanged, because it runs in place of this process: arguments and environment
/// byte for byte (they needn't be UTF-8), additional descriptors, ignored signals.
public struct Inheritance: Hashable, Sendable {
  /// The index in this process's arguments at which the program's own begin, with argv[0].
  public var firstArgument: Int
  /// In addition to 0, 1 and 2; they keep their numbers.
  public var descriptors: [Int32]
  /// As in `ProcessStatus`.
  public var ignoredSignals: UInt64
  /// A pipe to which the child writes its pid (four bytes) before it executes.
  public var announcement: Int32?
  /// It stays in this process's session and process group. Otherwise it leads a session of its own, which has
  /// no terminal.
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

  /// What this process has inherited itself. Call it before any descriptor is opened.
  public static func ofThisProcess(firstArgument: Int) -> Inheritance {
    let open = (try? listNumbers("/proc/self/fd")) ?? []
    // The list includes the descriptor through which it was read, which is closed by now.
    let ours = open.filter { $0 > STDERR_FILENO && fcntl($0, F_GETFD) == 0 }
    return Inheritance(
      firstArgument: firstArgument, descriptors: ours, ignoredSignals: clinux_ignored_signals())
  }

  /// Executes the program in this process. Returns the error's number if that fails.
  public func execute(_ path: String) -> Int32 {
    for number in [SIGPIPE, SIGXFSZ] where !ProcessStatus.contains(ignoredSignals, number) {
      signal(number, SIG_DFL)
    }
    // As in a program that is spawned.
    var none = sigset_t()
    sigemptyset(&none)
    sigprocmask(SIG_SETMASK, &none, nil)
    clinux_restore_core_files()
    return -kernelResult(path) { execv($0, CommandLine.unsafeArgv + firstArgument) }
  }
}

/// Passes a request whose program inherits to `body`.
func withInherited<Result>(
  _ request: SpawnRequest, inheritance: Inheritance,
  _ body: (inout clinux_spawn) -> Result
) -> Result {
  // `char *const[]`, ended by nil, valid until this process ends.
  let arguments = UnsafeRawPointer(CommandLine.unsafeArgv + inheritance.firstArgument)
    .assumingMemoryBound(to: UnsafeMutablePointer<CChar>?.self)
  return request.path.withCString { path in
    request.directory.withCString { directory in
      inheritance.descriptors.withUnsafeBufferPointer { kept in
        var prepared = clinux_spawn(
          path: path, arguments: arguments, environment: nil, directory: directory,
          input: request.input, output: request.output, error: request.error,
          cgroup: request.cgroup ?? -1, kept: kept.baseAddress, kept_count: Int32(kept.count),
          ignored: inheritance.ignoredSignals, announcement: inheritance.announcement ?? -1,
          keeps_session: inheritance.keepsSession ? 1 : 0,
          terms: nil, oom_score: request.oomScore.raw, waits: request.waitsForRelease ? 1 : 0)
        return body(&prepared)
      }
    }
  }
}

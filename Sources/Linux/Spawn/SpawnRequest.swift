import CLinux
import Glibc

/// A request to start a process. The process inherits only the user and the limits; everything else
/// is in the request.
public struct SpawnRequest: Sendable {
  /// The program's path, which contains a slash. `resolveExecutable` finds a program by its name.
  public var path: String
  /// All arguments, beginning with argv[0].
  public var arguments: [String]
  public var environment: [String: String]
  public var directory: String
  /// The descriptor that becomes standard input; `output` and `error` become 1 and 2.
  public var input: Int32
  public var output: Int32
  public var error: Int32
  /// The descriptor of the cgroup in which the process is created; nil: this process's cgroup.
  public var cgroup: Int32?
  /// It replaces `arguments` and `environment` if it isn't nil.
  public var inheritance: Inheritance?
  /// How the process differs from this one. It can't be combined with `inheritance`.
  public var terms: SpawnTerms?
  public var oomScore = OOMScore.usual
  /// True if the process waits for `ForkedChild.release` before it executes the program. If this
  /// process ends first, the program never runs.
  public var waitsForRelease = false
  /// True if Yama lets every process of its user trace the process, also after this one has ended.
  public var permitsTracing = false

  public init(
    path: String, arguments: [String], environment: [String: String], directory: String,
    input: Int32, output: Int32, error: Int32, cgroup: Int32? = nil
  ) {
    self.path = path
    self.arguments = arguments
    self.environment = environment
    self.directory = directory
    self.input = input
    self.output = output
    self.error = error
    self.cgroup = cgroup
  }
}

/// A process's `oom_score_adj`, which determines how readily the kernel's own OOM killer chooses
/// it.
public enum OOMScore: Hashable, Sendable {
  /// The value set by `clinux_set_spawn_oom_score`; if that wasn't called, the value of this
  /// process.
  case usual
  /// The value of this process, for a process that belongs to the daemon.
  case kept
  /// A value from -1000 to 1000. A value below the lowest that this process may set needs
  /// CAP_SYS_RESOURCE.
  case value(Int32)

  var raw: Int32 {
    switch self {
    case .usual: Int32(CLINUX_OOM_SCORE_USUAL)
    case .kept: Int32(CLINUX_OOM_SCORE_KEPT)
    case .value(let value): value
    }
  }

  /// The value that workers usually get from a daemon that was started with the value `daemon`. A
  /// negative value protects a daemon, and must not protect its workers: the kernel would end all
  /// other processes before a worker that leaks memory. A positive value is that of the whole
  /// session, and is kept for the workers too.
  public static func ofWorkers(daemon: Int32) -> Int32 { max(daemon, 0) }
}

/// A child process that was started, and the descriptor through which its end is seen.
public struct SpawnedProcess: Sendable {
  public let pid: Int32
  /// The pidfd, which polls readable when the process has ended.
  public let pidfd: Descriptor
  /// The start time as in `ProcessIdentity`.
  public let startTime: UInt64

  public var identity: ProcessIdentity { ProcessIdentity(pid: pid, startTime: startTime) }
}

/// Passes the request as C strings to `body`; they are valid until it returns.
func withPrepared<Result>(
  _ request: SpawnRequest, _ body: (inout clinux_spawn) -> Result
) throws(SpawnError) -> Result {
  var environment: [String] = []
  for (key, value) in request.environment.sorted(by: { $0.key < $1.key }) {
    if key.isEmpty || key.utf8.contains(UInt8(ascii: "=")) {
      throw SpawnError(step: .prepare, code: EINVAL, request: request)
    }
    environment.append("\(key)=\(value)")
  }
  let all = request.arguments + environment + [request.path, request.directory]
  if all.contains(where: { $0.utf8.contains(0) }) {
    throw SpawnError(step: .prepare, code: EINVAL, request: request)
  }
  let arguments = request.arguments.map { strdup($0) } + [nil]
  // The child writes its own pid over the zeros.
  let pidVariables = (request.terms?.pidVariables ?? []).compactMap { strdup("\($0)=0000000000") }
  let pidDigits = pidVariables.map { Optional($0 + strlen($0) - 10) }
  let variables = environment.map { strdup($0) } + pidVariables + [nil]
  defer { for pointer in arguments + variables { free(pointer) } }
  let inheritance = request.inheritance
  return request.path.withCString { path in
    request.directory.withCString { directory in
      arguments.withUnsafeBufferPointer { arguments in
        variables.withUnsafeBufferPointer { variables in
          (inheritance?.descriptors ?? []).withUnsafeBufferPointer { kept in
            withTerms(request.terms, pidDigits: pidDigits) { terms in
              var prepared = clinux_spawn(
                path: path, arguments: inheritance?.arguments ?? arguments.baseAddress,
                environment: inheritance == nil ? variables.baseAddress : nil,
                directory: directory, input: request.input, output: request.output,
                error: request.error, cgroup: request.cgroup ?? -1, kept: kept.baseAddress,
                kept_count: Int32(kept.count), ignored: inheritance?.ignoredSignals ?? 0,
                announcement: inheritance?.announcement ?? -1,
                keeps_session: inheritance?.keepsSession == true ? 1 : 0, terms: terms,
                oom_score: request.oomScore.raw, waits: request.waitsForRelease ? 1 : 0,
                permits_tracing: request.permitsTracing ? 1 : 0)
              return body(&prepared)
            }
          }
        }
      }
    }
  }
}

/// Finds a program as execvp(3) does. A name with a slash is used as it is; others are searched for
/// in the directories of `path`. The result is nil if there is no file that may be executed.
public func resolveExecutable(_ name: String, path: String) -> String? {
  if name.isEmpty { return nil }
  if name.contains("/") { return name }
  for directory in path.split(separator: ":", omittingEmptySubsequences: false) {
    // An empty entry means the current directory, which is never intended for a daemon.
    if directory.isEmpty { continue }
    let candidate = "\(directory)/\(name)"
    var status = stat()
    if access(candidate, X_OK) == 0, stat(candidate, &status) == 0,
      status.st_mode & S_IFMT == S_IFREG
    {
      return candidate
    }
  }
  return nil
}

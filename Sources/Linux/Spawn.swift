import CLinux
import Glibc

/// What to start. Everything is given; nothing is inherited but the user and the limits.
public struct SpawnRequest: Sendable {
  /// With a slash; look names up with `resolveExecutable`.
  public var path: String
  /// All of them, with argv[0].
  public var arguments: [String]
  public var environment: [String: String]
  public var directory: String
  /// Become 0, 1 and 2.
  public var input: Int32
  public var output: Int32
  public var error: Int32
  /// Descriptor of the cgroup to be born in.
  public var cgroup: Int32?
  /// Takes the place of `arguments` and `environment`.
  public var inheritance: Inheritance?
  /// Where it differs from us; not together with `inheritance`.
  public var terms: SpawnTerms?

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

public struct SpawnedProcess: Sendable {
  public let pid: Int32
  /// Polls readable when the process has ended.
  public let pidfd: Descriptor
  public let startTime: UInt64

  public var identity: ProcessIdentity { ProcessIdentity(pid: pid, startTime: startTime) }
}

/// Starts a process in a session of its own. Only from a thread that lives as long as the daemon
/// (see `clinux_spawn`).
public func spawn(_ request: SpawnRequest) throws(SpawnError) -> SpawnedProcess {
  var pidfd: Int32 = -1
  var failedStep: Int32 = 0
  let pid = try withPrepared(request) { (prepared: inout clinux_spawn) in
    clinux_spawn(&prepared, &pidfd, &failedStep)
  }
  guard pid > 0 else {
    throw SpawnError(
      step: SpawnError.Step(rawValue: failedStep & 0xFF) ?? .fork, code: -pid, request: request,
      limit: Int(failedStep >> 8))
  }
  do throws(SystemCallError) {
    let held = pidfd >= 0 ? Descriptor(owning: pidfd) : try Descriptor.pidfd(of: pid)
    // It is our child and not yet reaped, so its entry in /proc is there even if it has ended.
    return SpawnedProcess(
      pid: pid, pidfd: held, startTime: try ProcessStat.read(pid).startTime)
  } catch {
    // A process that we couldn't hold on to must not run on unseen.
    kill(pid, SIGKILL)
    waitForChild(pid)
    throw SpawnError(step: .hold, code: error.code, request: request)
  }
}

/// Lends the request as C strings; they live until `body` returns.
private func withPrepared<Result>(
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
  if let inheritance = request.inheritance {
    return withInherited(request, inheritance, body)
  }
  let arguments = request.arguments.map { strdup($0) } + [nil]
  // The child writes its own number over the zeros.
  let ownNumber = request.terms?.pidVariable.flatMap { strdup("\($0)=0000000000") }
  let digits = ownNumber.map { $0 + strlen($0) - 10 }
  let variables = environment.map { strdup($0) } + (ownNumber.map { [$0] } ?? []) + [nil]
  defer { for pointer in arguments + variables { free(pointer) } }
  return request.path.withCString { path in
    request.directory.withCString { directory in
      arguments.withUnsafeBufferPointer { arguments in
        variables.withUnsafeBufferPointer { variables in
          withTerms(request.terms, digits) { terms in
            var prepared = clinux_spawn(
              path: path, arguments: arguments.baseAddress, environment: variables.baseAddress,
              directory: directory, input: request.input, output: request.output,
              error: request.error, cgroup: request.cgroup ?? -1, kept: nil, kept_count: 0,
              ignored: 0, announcement: -1, terms: terms)
            return body(&prepared)
          }
        }
      }
    }
  }
}

/// Finds a program as execvp(3) does: names with a slash as they are, others along `path`. nil:
/// none that may be executed.
public func resolveExecutable(_ name: String, path: String) -> String? {
  if name.isEmpty { return nil }
  if name.contains("/") { return name }
  for directory in path.split(separator: ":", omittingEmptySubsequences: false) {
    // An empty entry means the current directory, which for a daemon is nobody's intention.
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

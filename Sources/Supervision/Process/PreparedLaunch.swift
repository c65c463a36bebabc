import Glibc
import Linux

/// The files that a launch needs, found and opened. Opening them can block without limit if a file
/// system doesn't answer. The fork that follows can't.
public struct PreparedLaunch: Sendable {
  public let plan: LaunchPlan
  let request: SpawnRequest
  let logStart: Int64
  /// The descriptors whose numbers are in `request`.
  fileprivate let files: [Descriptor]

  /// Closes the descriptors after the fork; the child has its own copies. The last close of a file
  /// may wait for its file system. If the log may be in any file system, it is closed on a thread
  /// that may wait.
  func dispose() {
    guard plan.isLogPathConfigured, !files.isEmpty else { return }
    // If an earlier close hangs, the descriptors are closed when this object is freed.
    _ = JobPool.files.submitIfIdle(about: "close \(plan.name)") { [files] in
      withExtendedLifetime(files) {}
      return {}
    }
  }
}

extension LaunchPlan {
  /// Reads the worker's `env_file`, finds its program, and opens its log. The call may block.
  public func prepare() throws(LaunchError) -> PreparedLaunch {
    try withFileVariables().open()
  }

  private func open() throws(LaunchError) -> PreparedLaunch {
    let path = try executable(of: command)
    if let inheritance {
      var request = SpawnRequest(
        path: path, arguments: [], environment: [:], directory: directory,
        input: STDIN_FILENO, output: STDOUT_FILENO, error: STDERR_FILENO,
        cgroup: cgroup?.directory.raw)
      request.inheritance = inheritance
      return PreparedLaunch(plan: self, request: request, logStart: 0, files: [])
    }
    try checkDescriptors()
    let log: WorkerLog
    let null: Descriptor
    do throws(SystemCallError) {
      log = try WorkerLog.open(logDestination, limit: logLimit)
      null = try Descriptor.open("/dev/null")
    } catch {
      throw .log(error)
    }
    var request = SpawnRequest(
      path: path, arguments: command, environment: fullEnvironment, directory: directory,
      input: null.raw, output: log.descriptor.raw, error: log.descriptor.raw,
      cgroup: cgroup?.directory.raw)
    request.terms = terms
    request.oomScore = oomScore
    // The next daemon isn't its ancestor. (A program of `dormouse wrap` doesn't outlive that, and
    // another user's process may not be traced anyway.)
    request.permitsTracing = account == nil && Yama.current.forbidsStrangers
    return PreparedLaunch(
      plan: self, request: request, logStart: log.start, files: [log.descriptor, null])
  }

  /// Prepares a command that runs for the worker with this pid, but isn't part of it. The call may
  /// block.
  func prepareBeside(
    _ arguments: [String], pid: Int32, keepsOutput: Bool
  ) throws(LaunchError) -> PreparedLaunch {
    let plan = try withFileVariables()
    var environment = plan.bareEnvironment
    environment["DORMOUSE_WORKER_PID"] = "\(pid)"
    let path = try plan.executable(of: arguments)
    let output: Descriptor
    let null: Descriptor
    do throws(SystemCallError) {
      null = try Descriptor.open("/dev/null", O_RDWR)
      // The limit is off, because the worker is writing to its log.
      output = keepsOutput ? try WorkerLog.open(logDestination, limit: .max).descriptor : null
    } catch {
      throw .log(error)
    }
    var request = SpawnRequest(
      path: path, arguments: arguments, environment: environment, directory: directory,
      input: null.raw, output: output.raw, error: output.raw)
    request.terms = commandTerms
    return PreparedLaunch(plan: self, request: request, logStart: 0, files: [null, output])
  }
}

extension SideProgram {
  /// Runs a command that belongs to no worker. It runs in the daemon's own cgroup, as the daemon's
  /// user, with these descriptors as its input and output, and no others.
  ///
  /// - Parameters:
  ///   - subject: identifies the job if a file system hangs. Only one command per subject is
  ///     prepared at a time.
  ///   - additional: variables that are added to the environment.
  public static func alone(
    _ command: [String], about subject: String, in directory: String,
    environment: [String: String], adding additional: [String: String], input: Descriptor,
    output: Descriptor
  ) -> SideProgram {
    let plan = LaunchPlan(
      name: subject, command: command, directory: directory, environment: environment, logPath: "")
    return SideProgram(about: subject) { () throws(LaunchError) in
      var environment = plan.bareEnvironment
      environment["DORMOUSE_WORKER"] = nil
      environment.merge(additional) { $1 }
      let request = SpawnRequest(
        path: try plan.executable(of: command), arguments: command, environment: environment,
        directory: directory, input: input.raw, output: output.raw, error: output.raw)
      return PreparedLaunch(plan: plan, request: request, logStart: 0, files: [input, output])
    }
  }
}

/// A worker's process between fork and execve, before the event loop watches it.
public struct ForkedWorker: Sendable {
  fileprivate let prepared: PreparedLaunch
  fileprivate let child: ForkedChild
  fileprivate let cgroupRefusal: SpawnError?

  /// Forks into the worker's cgroup, or outside of it if the kernel refuses that.
  fileprivate init(
    _ prepared: PreparedLaunch, by fork: (SpawnRequest) throws(SpawnError) -> ForkedChild
  ) throws(LaunchError) {
    self.prepared = prepared
    do throws(SpawnError) {
      (child, cgroupRefusal) = try Self.fork(prepared.request, by: fork)
    } catch { throw .spawn(error) }
    prepared.dispose()
  }

  /// The record by which a later daemon finds the process.
  public func record(bootID: String, state: String) -> WorkerRecord {
    let plan = prepared.plan
    return WorkerRecord(
      plan, child.identity, in: cgroupRefusal == nil ? plan.cgroup : nil, bootID: bootID,
      state: state)
  }

  /// Lets the process execute its program. The caller has written its record, or can't write it. It
  /// may be called on any thread, and more than once.
  public func release() { child.release() }

  private static func fork(
    _ request: SpawnRequest, by fork: (SpawnRequest) throws(SpawnError) -> ForkedChild
  ) throws(SpawnError) -> (ForkedChild, SpawnError?) {
    do throws(SpawnError) { return (try fork(request), nil) } catch {
      guard error.mayBeTheCgroup else { throw error }
      var request = request
      request.cgroup = nil
      return (try fork(request), error)
    }
  }
}

extension PreparedLaunch {
  /// Forks on the daemon's fork thread, and waits for the result. Don't call it on the event loop's
  /// thread. The program runs after `ForkedWorker.release`.
  public func fork() throws(LaunchError) -> ForkedWorker {
    try ForkedWorker(self) { (request) throws(SpawnError) in
      var request = request
      request.waitsForRelease = true
      return try ForkThread.shared.fork(request)
    }
  }

  /// Forks on the calling thread, which must live until the program runs.
  public func forkHere() throws(LaunchError) -> ForkedWorker {
    try ForkedWorker(self) { (request) throws(SpawnError) in try ForkedChild(request) }
  }
}

/// A worker's launch between fork and execve. It belongs to the event loop's thread, which watches
/// `report` and calls `poll`, or `expire` at the deadline.
public final class WorkerStart {
  private let forked: ForkedWorker
  private let start: StartingProcess

  /// The maximum time between fork and execve. A file system that is mounted at its first use needs
  /// some seconds.
  public static let timeout = Duration.seconds(10)

  /// Readable when `poll` may have a new result.
  public var report: Descriptor { start.report }
  /// The pid of a child of this process that nothing else may reap.
  public var pid: Int32 { start.process.pid }

  public init(_ forked: ForkedWorker) {
    self.forked = forked
    start = StartingProcess(forked.child)
  }

  /// The worker, if its program runs by now, or nil if that isn't decided yet. It never blocks.
  public func poll() throws(LaunchError) -> WorkerProcess? {
    try worker { () throws(SpawnError) in try start.poll() }
  }

  /// Ends a launch whose deadline has passed. A process that hasn't executed its program by now
  /// never becomes a worker.
  public func expire() throws(LaunchError) -> WorkerProcess? {
    try worker { () throws(SpawnError) in try start.expire(after: Self.timeout) }
  }

  /// Ends a launch that isn't needed any more.
  public func abandon() { start.abandon() }

  private func worker(
    _ poll: () throws(SpawnError) -> SpawnedProcess?
  ) throws(LaunchError) -> WorkerProcess? {
    do throws(SpawnError) {
      return try poll().map {
        WorkerProcess(forked.prepared, $0, cgroupRefusal: forked.cgroupRefusal)
      }
    } catch { throw .spawn(error) }
  }
}

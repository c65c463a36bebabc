import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// Plans launches: it derives command, user, limits, sockets and log from a worker's configuration.
/// Belongs to the loop's thread.
struct LaunchPlanner {
  /// The cgroup below which the workers' cgroups are created; nil: they get none.
  var cgroups: CgroupRoot?
  /// The reason for which the memory of workers can't be limited, in addition to the kernel's
  /// reason.
  var limitsObstacle: DelegatedGroup.Obstacle?
  /// nil for a wrapped program: no process of an earlier daemon can exist.
  var leftovers: Leftovers?
  /// The directory of the workers' logs.
  let logs: String
  /// The path of the daemon's control socket. The workers' channels are beside it.
  let socket: String
  /// What the only worker of a wrapper inherits from its caller; nil: the workers are a daemon's.
  var inheritance: Inheritance?
  let restarts: RestartSupervisor
  let services: Services

  /// Describes what a launch has to look up and create on another thread.
  func query(of worker: WorkerUnit) -> TermsQuery {
    TermsQuery(
      name: worker.id.name, wanted: WantedAccount(worker.configuration), leftovers: leftovers,
      cgroups: cgroups, memoryLimit: worker.configuration.limits.memory?.bytes)
  }

  /// - Parameters:
  ///   - account: the user that the worker runs as; nil: the daemon's user.
  ///   - listeners: the worker's `listen` sockets, in the order of the configuration.
  func plan(
    for worker: WorkerUnit, as account: Account?, in cgroup: WorkerCgroup?,
    listeners: [Listener]
  ) throws(SystemCallError) -> LaunchPlan {
    let configuration = worker.configuration
    let base = account.map { environment(of: worker, as: $0) } ?? worker.environment
    var plan = LaunchPlan(
      name: worker.id.name, command: configuration.command, directory: configuration.directory,
      environment: restarts.environment(of: worker.id, over: base),
      cgroup: cgroup, logPath: defaultLog(of: worker.id),
      notifySocket: worker.conversation?.notifyPath,
      pressureWatch: worker.conversation?.pressurePath)
    plan.workerSocket = worker.conversation?.workerSocketPath
    plan.mark = mark(of: worker.id)
    plan.watchdog = plan.notifySocket == nil ? nil : configuration.watchdog
    plan.stored = worker.stored?.entriesForLaunch() ?? []
    plan.inheritance = inheritance
    plan.account = account
    planFiles(&plan, worker)
    plan.limits = configuration.limits.spawnLimits
    plan.umask = configuration.umask
    if let score = configuration.limits.oomScore { plan.oomScore = .value(Int32(score)) }
    // Root's session keyring contains the key of the images, so workers of a daemon that runs as
    // root get a keyring of their own. Workers of another user's daemon keep its keyring: what they
    // may read there, they may read in any case, and the kernel limits the number of keyrings of a
    // user.
    plan.newKeyring = geteuid() == 0
    planLog(&plan, configuration)
    if let size = configuration.output.maxSize, !sharesLog(worker) { plan.logLimit = size.bytes }
    if case .notificationDescriptor(let number) = configuration.readiness {
      plan.readinessChannel = try ReadinessChannel(number: number)
    }
    plan.listeners = listeners
    return plan
  }

  /// Completes the plan of a worker that runs already, with what matters to a running worker.
  /// Called while the daemon starts, when it may wait.
  func complete(adopted plan: inout LaunchPlan, of worker: WorkerUnit) {
    guard worker.isDeclared || !worker.configuration.settings.isEmpty else { return }
    do throws(Refusal) {
      plan.account = try WantedAccount(worker.configuration).lookUp()
    } catch { services.log(.warning, "\(worker.id): \(error.text)") }
    planFiles(&plan, worker)
    plan.umask = worker.configuration.umask
    plan.newKeyring = geteuid() == 0
    // The memory controller may have been off meanwhile (`DelegatedGroup.prepareForStart`).
    if let limit = worker.configuration.limits.memory {
      limitMemory(of: worker.id, plan.cgroup, limit)
    }
    let path = plan.logPath
    planLog(&plan, worker.configuration)
    // The log stays the file to which the worker was launched to write.
    plan.isLogPathConfigured = plan.isLogPathConfigured || path != defaultLog(of: worker.id)
    plan.logPath = path
  }

  /// The path of the log that a worker writes to, or would write to if it were started.
  func logPath(of worker: WorkerUnit) -> String {
    worker.process?.plan.logPath ?? worker.configuration.output.file ?? defaultLog(of: worker.id)
  }

  /// The user, by name or number, that could put symbolic links on the path of that log; nil: only
  /// the daemon's user could.
  func logUser(of worker: WorkerUnit) -> String? {
    if let plan = worker.process?.plan {
      return plan.isLogPathConfigured ? plan.account.map { "\($0.identity.user)" } : nil
    }
    return worker.configuration.output.file == nil ? nil : worker.configuration.user
  }

  /// The value of DORMOUSE_RUN, which all processes of a worker have in their environment. It is
  /// the same in the next daemon.
  func mark(of id: WorkerID) -> String {
    "\(ChannelPlan.directory(of: socket))/\(CgroupRoot.sanitised(id.name))"
  }

  /// - Parameter error: why the limit couldn't be set; nil: it was set, or not tried.
  func warnOfMemoryLimit(
    _ id: WorkerID, limit: ByteCount, cgroup: WorkerCgroup?, error: SystemCallError?
  ) {
    let reason: String
    if cgroup == nil {
      reason = "it has no cgroup of its own"
    } else if let error {
      reason =
        limitsObstacle?.description ?? "its cgroup has no memory controller (\(error))"
    } else {
      return
    }
    services.log(.warning, "\(id): limits.memory, \(limit), is not enforced: \(reason)")
  }

  private func defaultLog(of id: WorkerID) -> String { "\(logs)/\(id.name).log" }

  private func planFiles(_ plan: inout LaunchPlan, _ worker: WorkerUnit) {
    let paths = worker.configuration.environmentFiles
    guard !paths.isEmpty else { return }
    let fixed = worker.configuration.environment.keys
    let files = EnvironmentFiles(
      paths: paths, account: plan.account, fixed: Set(RunHistory.variables).union(fixed))
    plan.fileVariables = { () throws(LaunchError) in try files.read() }
  }

  private func planLog(_ plan: inout LaunchPlan, _ configuration: WorkerConfiguration) {
    if let file = configuration.output.file {
      plan.logPath = file
      plan.isLogPathConfigured = true
      plan.logLimit = .max
    }
    if configuration.output.maxSize != nil { plan.logKeep = configuration.output.keep }
  }

  /// Whether another worker has the same log. Its launch must not rename the file: the other worker
  /// may have it open, and would continue to write to it under its new name.
  private func sharesLog(_ worker: WorkerUnit) -> Bool {
    guard let file = worker.configuration.output.file else { return false }
    return restarts.workers.values.contains {
      $0 !== worker && ($0.configuration.output.file == file || $0.process?.plan.logPath == file)
    }
  }

  /// The environment of a worker that runs as another user: that user's home and directories,
  /// unless the configuration names them.
  private func environment(of worker: WorkerUnit, as account: Account) -> [String: String] {
    var result = worker.environment
    for key in [
      "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
      "DBUS_SESSION_BUS_ADDRESS", "MAIL", "XAUTHORITY",
    ] {
      result[key] = nil
    }
    result["HOME"] = account.home
    result["SHELL"] = account.shell
    if !account.name.isEmpty {
      result["USER"] = account.name
      result["LOGNAME"] = account.name
    }
    return result.merging(worker.configuration.environment) { $1 }
  }

  /// Limits the memory of a running worker, on another thread: if the worker uses more than the
  /// limit, the kernel reclaims memory before the call returns.
  private func limitMemory(of id: WorkerID, _ cgroup: WorkerCgroup?, _ limit: ByteCount) {
    guard let cgroup else {
      return warnOfMemoryLimit(id, limit: limit, cgroup: nil, error: nil)
    }
    let done = services.loopReturn.callback { (error: SystemCallError?) in
      warnOfMemoryLimit(id, limit: limit, cgroup: cgroup, error: error)
    }
    services.mechanics.submit(about: id.name) {
      do throws(SystemCallError) {
        try cgroup.limitMemory(to: limit.bytes)
        done(nil)
      } catch { done(error) }
    }
  }
}

/// The files of a worker's `env_file`. If the worker has a `user`, that user could replace the
/// files, so they are read with the rights of that user.
struct EnvironmentFiles: Sendable {
  let paths: [String]
  /// The user that the worker runs as; nil: the daemon's user.
  let account: Account?
  /// The names of variables that the files don't replace.
  let fixed: Set<String>

  /// Reads the files; later files take precedence. May wait for a file system, so it must not be
  /// called on the loop's thread.
  func read() throws(LaunchError) -> [String: String] {
    var result: [String: String] = [:]
    for path in paths {
      let parsed = try read(path)
      guard let variables = parsed.value else { throw .environmentFile(reason(parsed, path)) }
      result.merge(variables) { $1 }
    }
    return result.filter { !fixed.contains($0.key) }
  }

  private func read(_ path: String) throws(LaunchError) -> ParseResult<[String: String]> {
    guard let account else { return EnvironmentFile.read(path) }
    do throws(SystemCallError) {
      return try account.acting { () throws(SystemCallError) in EnvironmentFile.read(path) }
    } catch {
      throw .environmentFile("can't read its `env_file` \(path): \(error)")
    }
  }

  private func reason(_ parsed: ParseResult<[String: String]>, _ path: String) -> String {
    let error = parsed.errors.first
    let line = error?.position.map { ", line \($0.line)" } ?? ""
    let reader = account.map {
      ", read as user \($0.name.isEmpty ? "\($0.identity.user)" : $0.name)"
    }
    return "its `env_file` \(path)\(line)\(reader ?? ""): \(error?.message ?? "can't be read")"
  }
}

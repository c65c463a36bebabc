import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// The settings that all launches of a daemon have in common.
struct LaunchSettings {
  /// Where workers' cgroups are made; nil: nowhere.
  var cgroups: CgroupRoot?
  /// Where an earlier version of the daemon made them.
  var earlierCgroups: CgroupRoot?
  /// Why workers' memory can't be limited, in addition to the kernel's reason.
  var limitsObstacle: DelegatedGroup.Obstacle?
  var records: WorkerRecordStore
  /// The directory of workers' logs.
  var logs: String
  /// The daemon's control socket, beside which workers' channels are.
  var socket: String
  var processes: any Processes
  /// The one worker of a wrapper, with what it inherits of its caller; nil: a daemon's.
  var inheritance: Inheritance?
}

/// The terms of a worker's launch by its configuration: command, user, limits, sockets, log. Belongs to the
/// loop's thread.
final class LaunchPlanner {
  private let settings: LaunchSettings
  private let restarts: RestartSupervisor
  private let log: (DaemonLog.Priority, String) -> Void
  /// Limits a running worker's memory, on another thread; `then` is called on the loop where that fails.
  private let limit:
    (WorkerID, WorkerCgroup, ByteCount, _ then: @escaping (SystemCallError) -> Void) -> Void

  init(
    settings: LaunchSettings, restarts: RestartSupervisor,
    log: @escaping (DaemonLog.Priority, String) -> Void,
    limit:
      @escaping (
        WorkerID, WorkerCgroup, ByteCount, _ then: @escaping (SystemCallError) -> Void
      ) -> Void
  ) {
    self.settings = settings
    self.restarts = restarts
    self.log = log
    self.limit = limit
  }

  convenience init(settings: LaunchSettings, restarts: RestartSupervisor, services: Services) {
    let (mechanics, loopReturn) = (services.mechanics, services.loopReturn)
    self.init(settings: settings, restarts: restarts) { [log = services.log] in
      log($0, $1)
    } limit: { id, cgroup, limit, then in
      let failed = loopReturn.callback { (error: SystemCallError?) in if let error { then(error) } }
      mechanics.submit(about: id.name) {
        do throws(SystemCallError) {
          try cgroup.limitMemory(to: limit.bytes)
          failed(nil)
        } catch { failed(error) }
      }
    }
  }

  /// What a launch has to look up and make, on another thread.
  func query(of worker: WorkerUnit) -> TermsQuery {
    let leftovers = Leftovers(
      records: settings.records, logs: settings.logs,
      groups: [settings.cgroups, settings.earlierCgroups].compactMap(\.self),
      processes: settings.processes)
    return TermsQuery(
      name: worker.id.name, wanted: WantedAccount(worker.configuration),
      leftovers: settings.inheritance == nil ? leftovers : nil, cgroups: settings.cgroups,
      memoryLimit: worker.configuration.limits.memory?.bytes)
  }

  /// - Parameters:
  ///   - account: the user that it runs as; nil: the daemon's.
  ///   - listeners: the sockets of its `listen`, in the configuration's order.
  func plan(
    for worker: WorkerUnit, as account: Account?, in cgroup: WorkerCgroup?,
    listeners: [Listener]
  ) throws(SystemCallError) -> LaunchPlan {
    let configuration = worker.configuration
    let base = account.map { environment(of: worker, as: $0) } ?? worker.environment
    var plan = LaunchPlan(
      name: worker.id.name, command: configuration.command, directory: configuration.directory,
      environment: restarts.environment(of: worker.id, over: base),
      cgroup: cgroup, logPath: ownLog(of: worker.id),
      notifySocket: worker.conversation?.notifyPath,
      pressureWatch: worker.conversation?.pressurePath)
    plan.workerSocket = worker.conversation?.workerSocketPath
    plan.mark = mark(of: worker.id)
    plan.watchdog = plan.notifySocket == nil ? nil : configuration.watchdog
    plan.stored = worker.stored?.entriesForLaunch() ?? []
    plan.inheritance = settings.inheritance
    plan.account = account
    planFiles(&plan, worker)
    plan.limits = configuration.limits.spawnLimits
    plan.umask = configuration.umask
    if let score = configuration.limits.oomScore { plan.oomScore = .value(Int32(score)) }
    // Root's session keyring has the images' key. Another user's daemon leaves its workers theirs: what
    // they may read there, they may read in any case, and a user may have few keyrings.
    plan.ownKeyring = geteuid() == 0
    planLog(&plan, configuration)
    if let size = configuration.output.maxSize { plan.logLimit = size.bytes }
    if case .notificationDescriptor(let number) = configuration.readiness {
      plan.readinessChannel = try ReadinessChannel(number: number)
    }
    plan.listeners = listeners
    return plan
  }

  /// The same for a worker that runs already, as far as it matters then. The daemon starts, and may wait.
  func complete(adopted plan: inout LaunchPlan, of worker: WorkerUnit) {
    guard worker.isDeclared || !worker.configuration.settings.isEmpty else { return }
    do throws(TermsError) {
      plan.account = try WantedAccount(worker.configuration).lookUp()
    } catch { log(.warning, "\(worker.id): \(error)") }
    planFiles(&plan, worker)
    plan.umask = worker.configuration.umask
    plan.ownKeyring = geteuid() == 0
    // The controller may have been off meanwhile (`DelegatedGroup.prepareForStart`).
    if let limit = worker.configuration.limits.memory {
      limitMemory(of: worker.id, plan.cgroup, limit)
    }
    let path = plan.logPath
    planLog(&plan, worker.configuration)
    // The file that it was launched to write to.
    plan.logIsElsewhere = plan.logIsElsewhere || path != ownLog(of: worker.id)
    plan.logPath = path
  }

  /// The log that a worker writes to, or would if it were started.
  func logPath(of worker: WorkerUnit) -> String {
    worker.process?.plan.logPath ?? worker.configuration.output.file ?? ownLog(of: worker.id)
  }

  /// The user that could put links in the way of that log: a name or number; nil: only the daemon's own.
  func logUser(of worker: WorkerUnit) -> String? {
    if let plan = worker.process?.plan {
      return plan.logIsElsewhere ? plan.account.map { "\($0.identity.user)" } : nil
    }
    return worker.configuration.output.file == nil ? nil : worker.configuration.user
  }

  /// The variables that all processes of a worker have in their environment. They are the same in the next
  /// daemon.
  func mark(of id: WorkerID) -> String {
    "\(ChannelPlan.directory(of: settings.socket))/\(CgroupRoot.sanitised(id.name))"
  }

  /// - Parameter error: of the attempt to limit it; nil: there was none, or it has succeeded.
  func complainOfMemoryLimit(
    _ id: WorkerID, limit: ByteCount, cgroup: WorkerCgroup?, error: SystemCallError?
  ) {
    let reason: String
    if cgroup == nil {
      reason = "it has no cgroup of its own"
    } else if let error {
      reason =
        settings.limitsObstacle?.description
        ?? "its cgroup has no memory controller (\(error))"
    } else {
      return
    }
    log(.warning, "\(id): limits.memory, \(limit), is not enforced: \(reason)")
  }

  private func ownLog(of id: WorkerID) -> String { "\(settings.logs)/\(id.name).log" }

  private func planFiles(_ plan: inout LaunchPlan, _ worker: WorkerUnit) {
    let paths = worker.configuration.environmentFiles
    guard !paths.isEmpty else { return }
    let fixed = worker.configuration.environment.keys
    let files = EnvironmentFiles(
      paths, account: plan.account, fixed: Set(RunHistory.variables).union(fixed))
    plan.fileVariables = { () throws(LaunchError) in try files.read() }
  }

  private func planLog(_ plan: inout LaunchPlan, _ configuration: WorkerConfiguration) {
    if let file = configuration.output.file {
      plan.logPath = file
      plan.logIsElsewhere = true
      plan.logLimit = .max
    }
    if configuration.output.maxSize != nil { plan.logKeep = configuration.output.keep }
  }

  /// Another user has a home and directories of its own, unless the configuration names them.
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

  /// For a running worker. If it uses more than the limit, the kernel reclaims memory before it answers.
  private func limitMemory(of id: WorkerID, _ cgroup: WorkerCgroup?, _ limit: ByteCount) {
    guard let cgroup else {
      return complainOfMemoryLimit(id, limit: limit, cgroup: nil, error: nil)
    }
    self.limit(id, cgroup, limit) { [weak self] error in
      self?.complainOfMemoryLimit(id, limit: limit, cgroup: cgroup, error: error)
    }
  }
}

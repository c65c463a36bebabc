import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

// What a declared worker runs with that isn't in its command: user, limits, sockets, log.

/// Why a worker can't have what its configuration asks for.
enum TermsError: Error, CustomStringConvertible {
  case account(AccountError)
  case notRoot(String)

  var description: String {
    switch self {
    case .account(let error): "\(error)"
    case .notRoot(let who):
      "only a daemon that runs as root can start a worker as \(who): run `dormouse daemon` as root, "
        + "or leave `user` and `group` out"
    }
  }
}

/// The user and group that a worker is to run as.
struct WantedAccount: Sendable {
  private let user: String?
  private let group: String?

  init(_ configuration: WorkerConfiguration) {
    (user, group) = (configuration.user, configuration.group)
  }

  /// Nothing has to be looked up.
  var isOurs: Bool { user == nil && group == nil }

  /// nil: as us. It asks the name service (nsswitch.conf(5)), which may be on another machine: not for the
  /// loop's thread once the loop runs.
  func lookUp() throws(TermsError) -> Account? {
    if isOurs { return nil }
    let account: Account
    do throws(AccountError) { account = try Account(user: user, group: group) } catch {
      throw .account(error)
    }
    if geteuid() == 0 { return account }
    guard account.isOurOwn else { throw .notRoot(names) }
    return nil
  }

  private var names: String {
    [user.map { "user \($0)" }, group.map { "group \($0)" }].compactMap { $0 }
      .joined(separator: ", ")
  }

  func isSilent(_ limit: Duration) -> String {
    isOurs
      ? "what an earlier instance has left couldn't be looked for within \(limit.spoken)"
      : "\(names) couldn't be looked up within \(limit.spoken): does the name service "
        + "(nsswitch.conf(5)) answer?"
  }

  var isStillSilent: String {
    isOurs
      ? "an earlier launch still looks for what an earlier instance has left"
      : "an earlier launch still waits for the name service (nsswitch.conf(5)) to find \(names)"
  }
}

extension Daemon {
  /// As `WantedAccount.lookUp`, while the daemon starts.
  func account(of configuration: WorkerConfiguration) throws(TermsError) -> Account? {
    try WantedAccount(configuration).lookUp()
  }

  /// What the plan lacks besides command and channels.
  func complete(_ plan: inout LaunchPlan, of runtime: WorkerRuntime, as account: Account?) throws {
    let configuration = runtime.configuration
    plan.account = account
    if let account { plan.environment = environment(of: runtime, as: account) }
    plan.limits = configuration.limits.spawnLimits
    plan.umask = configuration.umask
    if let score = configuration.limits.oomScore { plan.oomScore = .value(Int32(score)) }
    // Root's session keyring has the images' key. Another user's daemon leaves its workers theirs: what
    // they may read there, they may read in any case, and a user may have few keyrings.
    plan.ownKeyring = geteuid() == 0
    takeLog(&plan, configuration)
    if let size = configuration.output.maxSize { plan.logLimit = size.bytes }
    if case .notificationDescriptor(let number) = configuration.readiness {
      plan.readinessChannel = try ReadinessChannel(number: number)
    }
    plan.listeners = try listening.listeners(for: runtime, as: account)
  }

  /// The same of one that runs already, as far as it matters then.
  func complete(adopted plan: inout LaunchPlan, of runtime: WorkerRuntime) {
    guard runtime.isDeclared else { return }
    do throws(TermsError) {
      plan.account = try account(of: runtime.configuration)
    } catch { log(.warning, "\(runtime.id): \(error)") }
    plan.umask = runtime.configuration.umask
    plan.ownKeyring = geteuid() == 0
    // The controller may have been off meanwhile (`DelegatedGroup.prepareForStart`).
    if let limit = runtime.configuration.limits.memory {
      limitMemory(of: runtime, plan.cgroup, limit)
    }
    let path = plan.logPath
    takeLog(&plan, runtime.configuration)
    // Where it was told to write when it was started.
    plan.logIsElsewhere = plan.logIsElsewhere || path != state.log(of: runtime.id.name)
    plan.logPath = path
  }

  /// Where a worker writes to, or would if it were started.
  func logPath(of runtime: WorkerRuntime) -> String {
    runtime.process?.plan.logPath ?? runtime.configuration.output.file
      ?? state.log(of: runtime.id.name)
  }

  private func takeLog(_ plan: inout LaunchPlan, _ configuration: WorkerConfiguration) {
    if let file = configuration.output.file {
      plan.logPath = file
      plan.logIsElsewhere = true
      plan.logLimit = .max
    }
    if configuration.output.maxSize != nil { plan.logKeep = configuration.output.keep }
  }

  /// Who has a home of their own doesn't want ours, unless the configuration says so.
  private func environment(
    of runtime: WorkerRuntime, as account: Account
  ) -> [String: String] {
    var result = runtime.environment
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
    return result.merging(runtime.configuration.environment) { $1 }
  }

  /// Of one that runs. Where it uses more than it is allowed, the kernel reclaims before it answers.
  private func limitMemory(of runtime: WorkerRuntime, _ cgroup: WorkerCgroup?, _ limit: ByteCount) {
    guard let cgroup else { return complainOfMemoryLimit(runtime, limit, nil, nil) }
    mechanics.submit(about: runtime.id.name) { [mailbox, id = runtime.id] in
      do throws(SystemCallError) {
        try cgroup.limitMemory(to: limit.bytes)
      } catch {
        mailbox.post { daemon in
          guard let runtime = daemon.workers[id] else { return }
          daemon.complainOfMemoryLimit(runtime, limit, cgroup, error)
        }
      }
    }
  }

  func complainOfMemoryLimit(
    _ runtime: WorkerRuntime, _ limit: ByteCount, _ cgroup: WorkerCgroup?, _ error: SystemCallError?
  ) {
    let reason: String
    if cgroup == nil {
      reason = "it has no cgroup of its own"
    } else if let error {
      reason =
        limitsObstacle?.description
        ?? "the memory controller isn't there for its cgroup (\(error))"
    } else {
      return
    }
    log(.warning, "\(runtime.id): limits.memory, \(limit), isn't enforced: \(reason)")
  }
}

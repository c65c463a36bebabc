import Checksum
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

extension Daemon {
  /// Whom it runs as; nil: us.
  func account(of configuration: WorkerConfiguration) throws(TermsError) -> Account? {
    guard configuration.user != nil || configuration.group != nil else { return nil }
    let account: Account
    do throws(AccountError) {
      account = try Account(user: configuration.user, group: configuration.group)
    } catch { throw .account(error) }
    if geteuid() == 0 { return account }
    guard account.isOurOwn else {
      let names = [
        configuration.user.map { "user \($0)" }, configuration.group.map { "group \($0)" },
      ]
      throw .notRoot(names.compactMap { $0 }.joined(separator: ", "))
    }
    return nil
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
    plan.listeners = try listeners(for: runtime, as: account)
    if let limit = configuration.limits.memory { limitMemory(of: runtime.id, plan.cgroup, limit) }
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
      limitMemory(of: runtime.id, plan.cgroup, limit)
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

  private func limitMemory(of id: WorkerID, _ cgroup: WorkerCgroup?, _ limit: ByteCount) {
    guard let cgroup else {
      return log(
        .warning, "\(id): limits.memory, \(limit), isn't enforced: it has no cgroup of its own")
    }
    do throws(SystemCallError) {
      try cgroup.limitMemory(to: limit.bytes)
    } catch {
      log(
        .warning,
        "\(id): limits.memory, \(limit), isn't enforced: "
          + (limitsObstacle?.description
            ?? "the memory controller isn't there for its cgroup (\(error))"))
    }
  }

  // MARK: the sockets over which it talks with us

  /// Lets another user's worker reach its channels: the sockets are its own then, in a directory that
  /// everybody may pass through and nobody look into.
  func openChannels(
    of runtime: WorkerRuntime, to account: Account, in directory: DirectoryHandle
  ) {
    do throws(SystemCallError) { try directory.setMode(0o711) } catch {
      log(.warning, "\(runtime.id): \(error)")
    }
    if let path = runtime.notify?.path, !path.hasPrefix("@"),
      !give(path, to: account, in: directory)
    {
      runtime.notify?.remove()
      runtime.notify = reachableNotifySocket(
        of: runtime.id, for: account, takesDescriptors: runtime.configuration.fdstore > 0)
    }
    if let pressure = runtime.pressure, !give(pressure.path, to: account, in: directory) {
      log(
        .notice,
        "\(runtime.id): no MEMORY_PRESSURE_WATCH and no DORMOUSE_SOCKET: user \(account.identity.user) can't get into "
          + "\(channelDirectory); `chmod o+x` the directories on the way to it, or give --socket another"
      )
      pressure.remove()
      runtime.pressure = nil
    }
    if let talk = runtime.talk, !give(talk.socket.path, to: account, in: directory) {
      // For the same reason, which has been told.
      talk.socket.remove()
      runtime.talk = nil
    }
  }

  /// In a directory of its own below /run, where nothing is in the way of other users. Only the
  /// worker's user can send to it; an abstract name, to which every user can, is the last resort.
  private func reachableNotifySocket(
    of id: WorkerID, for account: Account, takesDescriptors: Bool
  ) -> NotifySocket? {
    do {
      let directory = Self.publicChannelDirectory(of: settings.socket)
      let handle = try openTrusted(directory, making: true, as: .own)
      try handle.setMode(0o711)
      let socket = try NotifySocket.create(
        in: directory, name: id.name, takesDescriptors: takesDescriptors)
      if socket.path.hasPrefix("@") || give(socket.path, to: account, in: handle) {
        return socket
      }
      socket.remove()
    } catch { log(.info, "\(id): NOTIFY_SOCKET gets an abstract name: \(error)") }
    let name = "@dormouse-\(String(UInt64.random(in: .min ... .max), radix: 16)).notify"
    do throws(SystemCallError) {
      return try NotifySocket(path: name, takesDescriptors: takesDescriptors)
    } catch {
      log(.warning, "\(id): can't offer NOTIFY_SOCKET: \(error)")
      return nil
    }
  }

  /// For root, whose own runtime directory others can't pass. One for each control socket.
  static func publicChannelDirectory(of socket: String) -> String {
    "/run/dormouse-channels-" + String(CRC32.castagnoli.checksum(of: socket.utf8), radix: 16)
  }

  /// False: it can't be reached.
  private func give(
    _ path: String, to account: Account, in directory: DirectoryHandle
  ) -> Bool {
    let name = String(path[(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)...])
    do throws(SystemCallError) {
      try directory.setOwner(
        of: name, user: account.identity.user, group: account.identity.group)
    } catch { return false }
    let status = try? account.acting { () throws(SystemCallError) in
      var status = stat()
      try systemCall("stat", path: path) { stat($0, &status) }
      return status
    }
    return status != nil
  }
}

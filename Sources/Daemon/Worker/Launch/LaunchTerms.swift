import Glibc
import Linux
import Policy
import PolicyFile
import Supervision

/// The user and group that a worker will run as.
struct WantedAccount: Sendable {
  private let user: String?
  private let group: String?

  init(_ configuration: WorkerConfiguration) {
    (user, group) = (configuration.user, configuration.group)
  }

  /// The configuration names no user and no group, so nothing has to be looked up.
  var isOurs: Bool { user == nil && group == nil }

  /// Looks up the account; nil: the daemon's user. This asks the name service (nsswitch.conf(5)),
  /// which may be on another machine: don't call it on the loop's thread once the loop runs.
  func lookUp() throws(Refusal) -> Account? {
    if isOurs { return nil }
    let account: Account
    do throws(AccountError) { account = try Account(user: user, group: group) } catch {
      throw Refusal(text: "\(error)")
    }
    if geteuid() == 0 { return account }
    if account.isOfThisProcess { return nil }
    throw Refusal(
      text: "only root can start a worker as \(names): run `dormouse daemon` as root, "
        + "or remove `user` and `group`")
  }

  private var names: String {
    [user.map { "user \($0)" }, group.map { "group \($0)" }].compactMap { $0 }
      .joined(separator: ", ")
  }

  func timeoutText(_ limit: Duration) -> String {
    isOurs
      ? "can't look for processes of an earlier instance within \(limit.text)"
      : "can't look up \(names) within \(limit.text): check the name service "
        + "(nsswitch.conf(5))"
  }

  var stillWaitingText: String {
    isOurs
      ? "an earlier launch still looks for processes of an earlier instance"
      : "an earlier launch still waits for the name service (nsswitch.conf(5)) to find \(names)"
  }
}

/// The conditions of a launch.
struct LaunchTerms: Sendable {
  var account: Account?
  var cgroup: WorkerCgroup?
  var cgroupRefusal: CgroupError?
  var limitRefusal: SystemCallError?
}

/// Determines whether a worker may be launched, as which user, and in which cgroup. Not for the
/// loop's thread.
struct TermsQuery: Sendable {
  let name: String
  let wanted: WantedAccount
  /// nil for a wrapped program: it runs as its caller does, and no process of an earlier daemon can
  /// exist.
  let leftovers: Leftovers?
  let cgroups: CgroupRoot?
  /// In bytes.
  let memoryLimit: Int64?

  func perform() -> Result<LaunchTerms, Refusal> {
    if let left = leftovers?.refusal(ofLaunching: name) { return .failure(Refusal(text: left)) }
    var terms = LaunchTerms()
    do throws(Refusal) {
      if leftovers != nil { terms.account = try wanted.lookUp() }
    } catch { return .failure(error) }
    guard let cgroups else { return .success(terms) }
    do throws(CgroupError) {
      terms.cgroup = try WorkerCgroup.create(in: cgroups, name: name)
    } catch { terms.cgroupRefusal = error }
    do throws(SystemCallError) {
      if let memoryLimit { try terms.cgroup?.limitMemory(to: memoryLimit) }
    } catch { terms.limitRefusal = error }
    return .success(terms)
  }
}

/// Detects processes of a worker that no daemon manages, because the record by which a daemon would
/// have found them is damaged or lost. A second instance beside them would use the same files and
/// sockets, and the first one would outlive `dormouse shutdown`.
struct Leftovers {
  let records: WorkerRecordStore
  /// The directory of workers' logs.
  let logs: String
  /// The cgroups below which workers have cgroups of their own.
  var groups: [CgroupRoot] = []
  let processes: any Processes

  /// The reason for which the worker must not be launched; nil: no process of an earlier instance
  /// runs.
  func refusal(ofLaunching name: String) -> String? {
    do { return try findRefusal(ofLaunching: name) } catch {
      return
        "can't see whether processes of an earlier instance still run (\(error)): try again later"
    }
  }

  private func findRefusal(ofLaunching name: String) throws -> String? {
    let pids: [Int32]
    if let group = try processes.group(of: name, in: groups) {
      pids = group.pids.sorted()
      if pids.isEmpty {
        // They can't be listed: they are threads of a threaded cgroup, or in another pid namespace.
        return "processes of an earlier instance still run without a valid record in "
          + "\(group.path): run `echo 1 > \(group.path)/cgroup.kill`, then `dormouse start \(name)`"
      }
    } else {
      // Without a cgroup, only a damaged record shows that there may be such processes.
      guard records.contains(name), (try? records.load(name)) == nil else { return nil }
      pids = try processes.writers(of: "\(logs)/\(name).log").sorted()
      if pids.isEmpty { return nil }
    }
    let shown = pids.prefix(20).map(String.init).joined(separator: " ")
    let what =
      pids.count == 1
      ? "1 process of an earlier instance still runs"
      : "\(pids.count) processes of an earlier instance still run"
    return "\(what) without a valid record: run `kill -9 \(shown)`, then "
      + "`dormouse start \(name)`"
  }
}

import Control
import Glibc
import Lifecycle
import Linux
import Policy
import Supervision

/// Why a running process can't be adopted.
struct AdoptionRefusal: Error {
  var text: String
  /// Whether the request itself is invalid.
  var isMalformed = false

  static func refused(_ text: String) -> AdoptionRefusal { AdoptionRefusal(text: text) }
  static func malformed(_ text: String) -> AdoptionRefusal {
    AdoptionRefusal(text: text, isMalformed: true)
  }
}

/// The process or cgroup that a request for adoption names.
struct ExternalProcess: Sendable {
  var root: ProcessStat
  var tree: ProcessTree
  var cgroup: WorkerCgroup?
  var command: ProcessCommand?
  /// The memory of its processes, as far as it may be opened.
  var memories: MemoryRefresh.Outcome?
  var jobs: ManagerJobs?
  /// The policy that the request names.
  var policy: LifecyclePolicy?

  /// Examines what is to be adopted. It refuses what must not sleep: the daemon and its parents,
  /// the system's first process, kernel threads, and processes that others have stopped or trace.
  /// The event loop checks whether the process belongs to another worker.
  ///
  /// It mustn't run on the event loop's thread. A process's command line and environment are read
  /// from its memory, which may be busy, or may wait for a file system.
  static func examine(_ wanted: AdoptionSpecification) throws(AdoptionRefusal) -> ExternalProcess {
    var candidate: ExternalProcess
    switch (wanted.pid, wanted.cgroup) {
    case (let pid?, nil): candidate = try examine(pid: pid, startedAt: wanted.startTime)
    case (nil, let name?): candidate = try examine(cgroup: name)
    default: throw .malformed("`adopt` needs either a pid or a cgroup")
    }
    for process in candidate.tree.processes { try check(process) }
    // The arguments are only shown, so a process may hide them.
    candidate.command = try? ProcessCommand.read(candidate.root.pid)
    let root = candidate.root.identity
    // Memory that can't be opened now is tried again before the process is suspended.
    candidate.memories = try? MemoryRefresh(root: root, session: root.pid, cgroup: candidate.cgroup)
      .perform()
    if candidate.cgroup != nil { candidate.jobs = ManagerJobs(root: root, tree: candidate.tree) }
    return candidate
  }

  private static func examine(
    pid: Int32, startedAt start: UInt64?
  ) throws(AdoptionRefusal) -> ExternalProcess {
    guard pid > 1 else { throw .refused("pid \(pid) can't be adopted") }
    let root: ProcessStat
    let tree: ProcessTree
    do throws(SystemCallError) {
      root = try ProcessStat.read(pid)
      if root.isEnded { throw SystemCallError("read", on: "/proc/\(pid)", code: ESRCH) }
      tree = try ProcessTree.discover(root: root.identity)
    } catch {
      throw .refused(
        error.meansVanished ? "there is no process \(pid)" : "process \(pid): \(error)")
    }
    guard start == nil || start == root.startTime else {
      throw .refused(
        "process \(pid) (\(root.name)) was started at another time: the one that was meant has "
          + "ended"
      )
    }
    return ExternalProcess(root: root, tree: tree, cgroup: nil)
  }

  private static func examine(cgroup name: String) throws(AdoptionRefusal) -> ExternalProcess {
    do {
      let group = try WorkerCgroup.find(name)
      if try group.isFrozen { throw AdoptionRefusal.refused("\(group.path) is already frozen") }
      let pids = try group.processes()
      var processes: [ProcessStat] = []
      for pid in pids {
        // A process that can't be read has ended.
        if let stat = try? ProcessStat.read(pid), !stat.isEnded { processes.append(stat) }
      }
      guard let root = processes.min(by: { $0.startTime < $1.startTime }) else {
        throw AdoptionRefusal.refused("no process is in the cgroup \(group.path)")
      }
      return ExternalProcess(root: root, tree: ProcessTree(processes: processes), cgroup: group)
    } catch let refusal as AdoptionRefusal { throw refusal } catch { throw .refused("\(error)") }
  }

  /// Why a process must not sleep; nil if it may. The other processes of its tree are checked by
  /// `examine`.
  static func refusal(of process: ProcessStat) -> String? {
    do throws(AdoptionRefusal) {
      try check(process)
      return nil
    } catch { return error.text }
  }

  private static func check(_ process: ProcessStat) throws(AdoptionRefusal) {
    let pid = process.pid
    func refused(_ reason: String) -> AdoptionRefusal {
      .refused("process \(pid) (\(process.name)) \(reason)")
    }
    if pid == 1 || ProcessStat.chain(of: getpid()).contains(where: { $0.pid == pid }) {
      throw refused("is the daemon or one of its parents")
    }
    if sendSignal(0, to: pid) == -EPERM { throw refused("belongs to another user") }
    if process.state == .stopped { throw refused("is stopped; continue it first (SIGCONT)") }
    if ForeignFreeze.holds(pid) { throw refused("is frozen; thaw its cgroup first") }
    // A process that has ended is refused when it is adopted.
    if let tracer = (try? ProcessStatus.read(pid))?.tracer, tracer != 0 {
      throw refused("is traced by process \(tracer)")
    }
    // The manager of such a process kills it if it doesn't report in time, even while it sleeps.
    if (try? ProcessCommand.hasEnvironment("WATCHDOG_USEC", pid)) == true {
      throw refused(
        "has a systemd watchdog, which would kill it while it sleeps; remove WatchdogSec= from its "
          + "unit first")
    }
    // A process that can't be read is refused when it is adopted. A process that has just executed
    // its program has no arguments for a moment, but it has a program.
    if (try? ProcessCommand.read(pid))?.arguments.isEmpty == true,
      readLink("/proc/\(pid)/exe") == nil
    {
      throw refused("is a kernel thread")
    }
  }
}

extension WorkerRegistry {
  /// The worker that a process belongs to. Only a few files of /proc are read, however many workers
  /// there are: only the workers that may own the process are checked.
  func owner(of pid: Int32) -> WorkerID? {
    let chain = ProcessStat.chain(of: pid)
    let groups = Self.groups(of: pid)
    return values.first { worker in
      guard let process = worker.process, Self.mayContain(process, chain: chain, groups: groups)
      else {
        return false
      }
      return process.owns(pid)
    }?.id
  }

  private static func mayContain(
    _ process: WorkerProcess, chain: [ProcessStat], groups: [String]
  ) -> Bool {
    if chain.first?.identity == process.identity { return true }
    if let path = process.cgroup?.path { return groups.contains { path.hasSuffix($0) } }
    return chain.contains { $0.identity == process.identity || $0.session == process.session }
  }

  /// The process's cgroup and those above it: `/a`, `/a/b`. A mount may show them below another
  /// directory.
  private static func groups(of pid: Int32) -> [String] {
    let names = (ProcessDetails.cgroup(of: pid) ?? "").split(separator: "/")
    return names.indices.map { "/" + names[...$0].joined(separator: "/") }
  }
}

extension ProcessStat {
  /// A process and its ancestors.
  static func chain(of pid: Int32) -> [ProcessStat] {
    var chain: [ProcessStat] = []
    var current = pid
    // The ancestors of a process that has ended can't be found.
    while current > 1, chain.count < 64, let stat = try? ProcessStat.read(current) {
      chain.append(stat)
      current = stat.parent
    }
    return chain
  }
}

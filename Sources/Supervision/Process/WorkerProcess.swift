import CLinux
import Glibc
import Linux

/// How a worker's root process ended.
public enum WorkerExit: Hashable, Sendable {
  case exited(Int32)
  case signaled(Int32)
  /// It wasn't the daemon's child, so the kernel doesn't report it.
  case unknown
}

/// nil while it runs; ECHILD when it isn't our child.
func reapChild(_ pidfd: Descriptor, pid: Int32) throws(SystemCallError) -> WorkerExit? {
  var kind: Int32 = 0
  var status: Int32 = 0
  let ended = try shim("waitid", on: "pid \(pid)") { clinux_reap(pidfd.raw, &kind, &status) }
  if ended == 0 { return nil }
  return kind == 0 ? .exited(status) : .signaled(status)
}

/// What is needed to end all of a worker.
public struct WorkerKilling: Sendable {
  public let root: ProcessIdentity
  public let session: Int32
  public let cgroup: WorkerCgroup?
  /// Of the root process.
  let pidfd: Descriptor

  /// Sends SIGKILL to all of it, and frees its memory at once.
  public func perform(until deadline: Deadline) throws(CgroupError) {
    // A process that can't be found now exits by itself.
    let tree = try? ProcessTree.discover(root: root, session: session, cgroup: cgroup)
    let memory = tree.map { MemoryRelease(of: $0, about: "\(root.pid) \(root.startTime)") }
    defer { memory?.begin() }
    try kill(until: deadline)
  }

  private func kill(until deadline: Deadline) throws(CgroupError) {
    if let cgroup { return try cgroup.kill() }
    // One call for the whole process group, in which no process can fork meanwhile. Our own child keeps its
    // number until we wait for it, ended or not: that can't be another group's.
    do throws(SystemCallError) {
      let stat = try ProcessStat.read(root.pid)
      if stat.identity == root, stat.parent == getpid(), getpgid(root.pid) == root.pid {
        sendSignal(SIGKILL, to: -root.pid)
      }
    } catch {
      // It can't be looked at: no descriptor is free, or /proc hides it.
      if !error.meansVanished { _ = clinux_pidfd_send_signal(pidfd.raw, SIGKILL) }
    }
    do throws(SystemCallError) {
      try ProcessTree.killAll(root: root, session: session, until: deadline)
    } catch {
      throw .failed(error)
    }
  }
}

/// A running worker, as far as the kernel is concerned. Belongs to the event loop's thread.
public final class WorkerProcess {
  public let plan: LaunchPlan
  public let identity: ProcessIdentity
  /// Polls readable when the root process has ended; see `reap`.
  public let pidfd: Descriptor
  /// nil: it runs outside a cgroup.
  public let cgroup: WorkerCgroup?
  /// Why it runs outside the cgroup that the plan names.
  public let cgroupRefusal: SpawnError?
  /// Where this launch's output begins in the log.
  public let logStart: Int64
  /// Of the root process.
  public var memory: Descriptor? { memoryDescriptors[identity] }
  /// Why `memory` is nil, or couldn't be opened again.
  public private(set) var memoryRefusal: SystemCallError?
  private var memoryDescriptors: [ProcessIdentity: Descriptor] = [:]

  /// The worker leads a session of its own.
  public var session: Int32 { identity.pid }

  private init(
    plan: LaunchPlan, identity: ProcessIdentity, pidfd: Descriptor, cgroup: WorkerCgroup?,
    cgroupRefusal: SpawnError?, logStart: Int64, opensMemory: Bool = true
  ) {
    self.plan = plan
    self.identity = identity
    self.pidfd = pidfd
    self.cgroup = cgroup
    self.cgroupRefusal = cgroupRefusal
    self.logStart = logStart
    guard opensMemory else { return }
    do throws(SystemCallError) {
      memoryDescriptors[identity] = try MemoryRefresh.open(identity)
    } catch { memoryRefusal = error }
  }

  /// Of a launch that came to execve. It opens the memory of a program that has just begun: what it had
  /// before, a copy of the daemon's, is taken down by then, and nothing can be waited for.
  convenience init(
    _ prepared: PreparedLaunch, _ process: SpawnedProcess, cgroupRefusal: SpawnError?
  ) {
    let plan = prepared.plan
    self.init(
      plan: plan, identity: process.identity, pidfd: process.pidfd,
      cgroup: cgroupRefusal == nil ? plan.cgroup : nil, cgroupRefusal: cgroupRefusal,
      logStart: prepared.logStart)
  }

  /// Starts it and waits until its program runs, for `WorkerStart.patience` at most. Not on the event
  /// loop's thread.
  public static func launch(_ plan: LaunchPlan) throws(LaunchError) -> WorkerProcess {
    let start = WorkerStart(try plan.prepare().forkHere())
    let deadline = Deadline(in: WorkerStart.patience)
    while true {
      if let process = try start.look() { return process }
      let isDue: Bool
      do throws(SystemCallError) {
        isDue = try pollDescriptor(start.report.raw, for: POLLIN, until: deadline)
      } catch {
        start.abandon()
        throw .log(error)
      }
      if !isDue, let process = try start.expire() { return process }
    }
  }

  /// Takes over one that an earlier daemon started. ESRCH when it has ended.
  ///
  /// - Parameter opensMemory: false: `memoryRefresh` does.
  public static func adopt(
    _ identity: ProcessIdentity, plan: LaunchPlan, logStart: Int64 = 0, opensMemory: Bool = true
  ) throws(SystemCallError) -> WorkerProcess {
    WorkerProcess(
      plan: plan, identity: identity, pidfd: try identity.openPidfd(), cgroup: plan.cgroup,
      cgroupRefusal: nil, logStart: logStart, opensMemory: opensMemory)
  }

  /// Needs no descriptor: the one that is held since launch is asked.
  public var life: ProcessLife {
    do throws(SystemCallError) {
      return try pollDescriptor(pidfd.raw, for: POLLIN, until: Deadline(in: .zero))
        ? .hasEnded : .lives
    } catch { return .unknown(error) }
  }
  /// SIGKILL has reached its root process, or it has ended.
  public var isEnding: Bool { identity.isEnding }

  /// All its processes, parents before children.
  public func tree() throws(SystemCallError) -> ProcessTree {
    try ProcessTree.discover(root: identity, session: session, cgroup: cgroup)
  }

  /// The same as of an earlier look at all processes; in a cgroup, which is cheap to read, as of now.
  public func tree(in scan: ProcessScan?) throws(SystemCallError) -> ProcessTree {
    guard cgroup == nil, let scan else { return try tree() }
    return scan.tree(root: identity, session: session)
  }

  /// Sends a signal to the root process. ESRCH when it has ended.
  public func signal(_ number: Int32) throws(SystemCallError) {
    try shim("pidfd_send_signal", on: "pid \(identity.pid)") {
      clinux_pidfd_send_signal(pidfd.raw, number)
    }
  }

  /// SIGKILL to all of it: stopped, frozen, or left behind by the root process. Takes its time where it
  /// has no cgroup and forks; not for the event loop (`killing`).
  public func killAll() throws(CgroupError) {
    try killing.perform(until: Deadline(in: .seconds(5)))
  }

  /// The same for another thread.
  public var killing: WorkerKilling {
    WorkerKilling(root: identity, session: session, cgroup: cgroup, pidfd: pidfd)
  }

  /// How the root process ended; nil while it runs. Only after `pidfd` has polled readable: before,
  /// asking could take a stop away from the tracing thread.
  public func reap() throws(SystemCallError) -> WorkerExit? {
    do throws(SystemCallError) {
      return try reapChild(pidfd, pid: identity.pid)
    } catch {
      if error.code != ECHILD { throw error }
      return life == .hasEnded ? .unknown : nil
    }
  }

  /// Whether a pid is one of the worker's, without looking at all processes.
  public func owns(_ pid: Int32) -> Bool {
    if pid == identity.pid { return life != .hasEnded }
    if let cgroup { return (try? cgroup.processes().contains(pid)) ?? false }  // Removed: empty.
    var current = pid  // What has ended owns nothing.
    for _ in 0..<64 where current > 1 {
      guard let stat = try? ProcessStat.read(current), stat.startTime >= identity.startTime else {
        return false
      }
      if stat.identity == identity || stat.session == session { return true }
      current = stat.parent
    }
    return false
  }
}

// MARK: - Signals that it handles

extension ProcessTree {
  /// The processes that get a signal for the whole worker: those that handle it, but none below another that does. A
  /// parent with a handler passes the signal on in its own way.
  func receiving(_ signal: Int32) throws(SystemCallError) -> ProcessTree {
    var covered: Set<Int32> = []
    var receivers: [ProcessStat] = []
    for stat in processes {
      if covered.contains(stat.parent) {
        covered.insert(stat.pid)
        continue
      }
      do throws(SystemCallError) {
        guard try ProcessStatus.read(stat.pid).catches(signal) else { continue }
        covered.insert(stat.pid)
        receivers.append(stat)
      } catch {
        if !error.meansVanished { throw error }
      }
    }
    return ProcessTree(processes: receivers)
  }
}

// MARK: - Memory descriptors

extension WorkerProcess {
  /// A descriptor of a process's memory that was opened while that was permitted.
  public func memory(of process: ProcessIdentity) -> Descriptor? { memoryDescriptors[process] }

  /// Those that are held of processes that live, by pid.
  public var memories: [Int32: Descriptor] {
    var result: [Int32: Descriptor] = [:]
    for (process, memory) in memoryDescriptors where !process.hasEnded {
      result[process.pid] = memory
    }
    return result
  }

  /// Opens the memory of all its processes again, where permitted. A descriptor stays with the program that ran
  /// when it was opened, so this is due when a worker has become ready (a wrapper may have executed the real
  /// program), and when it has got more processes. Not on the event loop's thread; see `memoryRefresh`.
  public func refreshMemory() throws(SystemCallError) { adopt(try memoryRefresh.perform()) }

  /// The same for another thread: it looks at all processes, and opening the memory of a process waits
  /// while that is in execve and its old memory is taken down. `adopt` gets what it returns.
  public var memoryRefresh: MemoryRefresh {
    MemoryRefresh(root: identity, session: session, cgroup: cgroup)
  }

  /// What `memoryRefresh` has opened.
  public func adopt(_ opened: MemoryRefresh.Outcome) {
    let ended = Set(memoryDescriptors.keys).subtracting(opened.present)
    for process in ended { memoryDescriptors[process] = nil }
    // What was opened earlier is worth more than nothing.
    memoryDescriptors.merge(opened.memories) { $1 }
    if opened.memories[identity] != nil { memoryRefusal = nil }
    if let refusal = opened.refusal { memoryRefusal = refusal }
  }

  /// Holds what an earlier daemon has opened.
  public func hold(_ memory: Descriptor, of process: ProcessIdentity) {
    memoryDescriptors[process] = memory
  }
}
